"""The API catalog, the overview for language models, and the documents as Markdown."""

import re

import pytest

from tests.service_process import ROOT

CATALOG = "/.well-known/api-catalog"


@pytest.fixture
def overview(service):
    return service.open("/llms.txt", fleet=None)


def path_of(url):
    assert url.startswith("http://localhost/")
    return url.removeprefix("http://localhost")


def test_the_catalog_is_a_link_set_that_leads_to_the_descriptions_and_the_status(service):
    response = service.open(CATALOG, fleet=None)
    assert response.content_type.startswith("application/linkset+json; profile=")
    (context,) = response.get_json(force=True)["linkset"]
    assert context.pop("anchor") == "http://localhost/api/v1"
    assert context.keys() == {"service-desc", "service-doc", "status"}
    for link in (link for links in context.values() for link in links):
        linked = service.open(path_of(link["href"]), fleet=None)
        assert (linked.status_code, linked.mimetype) == (200, link["type"])


def test_a_head_request_of_the_catalog_has_a_link_to_it(service):
    response = service.open(CATALOG, method="HEAD", fleet=None)
    assert (response.status_code, response.data) == (200, b"")
    assert '<http://localhost/.well-known/api-catalog>; rel="api-catalog"' in response.headers["Link"]


def test_the_overview_lists_every_endpoint_of_the_openapi_document(service, overview):
    assert overview.content_type == "text/plain; charset=utf-8"
    assert overview.text.startswith("# Driver Analytics API\n\n> ")
    listed = dict(re.findall(r"^- `GET (.+?)`: .*?( \(public\))?$", overview.text, re.MULTILINE))
    assert [*listed] == [*service.get("/openapi.json").json["paths"]]
    public = [path.removeprefix("/api/v1") for path, mark in listed.items() if mark]
    assert public == ["/report/{link}", "/healthz", "/livez"]


def test_the_overview_lists_every_document(overview):
    listed = {url.rpartition("/")[2] for url in re.findall(r"\]\((.*?\.md)\)", overview.text)}
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_every_link_of_the_overview_leads_to_what_it_names(service, overview):
    urls = re.findall(r"\[[^\]]+\]\(([^)]+)\)", overview.text)
    assert len(urls) > 5
    for url in urls:
        linked = service.open(path_of(url), fleet=None)
        assert linked.status_code == 200, url
        assert not url.endswith(".md") or linked.content_type == "text/markdown; charset=utf-8"


def test_every_link_of_a_document_leads_to_another_one(service):
    for path in (ROOT / "docs").glob("*.md"):
        text = service.get(f"/docs/{path.name}", fleet=None).text
        for target in re.findall(r"\]\((?!https?:|#)([^)#]*)", text):
            assert service.get(f"/docs/{target}", fleet=None).status_code == 200, (path.name, target)


def test_the_setting_gives_the_addresses_of_bodies_and_links(make_service):
    base_url = "https://api.example.com/driving"
    service = make_service(public_base_url=base_url)
    for path in (CATALOG, "/llms.txt", "/api/v1/drivers", "/api/v1/nothing"):
        response = service.open(path, headers={"Accept": "application/problem+json"})
        urls = re.findall(r"https?://[^\s\")>]+", f"{response.headers.get('Link')} {response.text}")
        assert urls
        assert {url.startswith(base_url) for url in urls} == {True}


@pytest.mark.parametrize(
    "name", ["client.md", "Clients.md", "clients", "a/b.md", "clients.md/", "..%2F..%2Fsetup.cfg", "docs.py", "x%ff"]
)
@pytest.mark.parametrize("fleet", [None, "f1"])
def test_a_document_that_does_not_exist_is_not_found_with_and_without_a_key(service, name, fleet):
    response = service.get(f"/docs/{name}", fleet=fleet)
    assert (response.status_code, response.json["error"]) == (404, "NotFound")
    assert response.json["message"] == "There is no such document. /llms.txt lists all documents."
