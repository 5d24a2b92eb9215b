"""tests/foreign.py: what the conventions about other packages rest on."""

import ast

import pytest

from tests.foreign import assigned_names, base_classes, object_attributes, private_names


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import p._q", ["p._q"]),
        ("from p._q import r", ["p._q.r"]),
        ("from p import _q as r", ["p._q"]),
        ("import p\np.q._r()", ["p.q._r"]),
        ("x = make()\nx._y = 1", ["x._y"]),
        ("getattr(x, '_y', None)", ["getattr(x, '_y', None)"]),
        ("m.setattr(x, '_y', 1)", ["m.setattr(x, '_y', 1)"]),
        ("m.setattr('p._q.r', 1)", ["m.setattr('p._q.r', 1)"]),
        ("class A:\n def f(self):\n  self._g = self._h()\n  type(self).__name__", []),
        ("getattr(x, 'y')\nx.y\nfrom __future__ import z", []),
        ("x._replace(y=1)", []),
    ],
)
def test_private_names_of_others_are_found(source, found):
    assert list(private_names(ast.parse(source))) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import p.q\np.q.r = 1", ["p.q.r"]),
        ("from p import q as r\nr.s += 1", ["p.q.s"]),
        ("def f():\n from p import Q\n del Q.r", ["p.Q.r"]),
        ("from p import Q\nsetattr(Q, 'r', 1)", ["p.Q"]),
        ("from p import q\nq.r['s'].t = 1", ["p.q.r['s'].t"]),
        ("from p import Q\nm.setattr(Q, 'r', 1)", ["p.Q"]),
        ("m.setattr('p.q', 1)\nm.delattr(f'p.{q}.r')", ["p.q", "p."]),
        ("import os\nos.environ['X'] = ''\nx = make()\nx.y = 1", []),
    ],
)
def test_attributes_of_imported_names_that_are_set_are_found(source, found):
    assert list(assigned_names(ast.parse(source))) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x):\n x.y = 1\n del x.z.y", ["x.y", "x.z.y"]),
        ("x = make()\nx.y, z = 1, 2\nm.setattr(x, 'y', 1)", ["x", "x.y"]),
        ("import p\np.q = 1\nm.setattr('p.r', 1)", []),
        ("class A:\n def f(self, x):\n  self.y = x.y", []),
    ],
)
def test_attributes_of_objects_that_are_set_are_found(source, found):
    assert list(object_attributes(ast.parse(source))) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from p.q import R\nclass A(R): pass", ["p.q.R"]),
        ("from p import q\nclass A(q.R[int], object): pass", ["p.q.R"]),
        ("import p\nclass A(p.Q): pass", ["p.Q"]),
        ("from app.x import Y\nimport logging\nclass A(Y, logging.Handler, Exception): pass\nclass B(A): pass", []),
    ],
)
def test_classes_of_third_parties_that_are_derived_from_are_found(source, found):
    assert list(base_classes(ast.parse(source))) == found
