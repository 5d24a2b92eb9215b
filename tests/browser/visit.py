"""A visit to a page."""

import re

SCREEN = 1280
TIMEOUT_MS = 10_000
# What the script of axe-core finds wrong with a page that it was loaded into.
RUN_AXE = """axe.run({rules: {'target-size': {enabled: true}}})
    .then(({violations}) => violations.map(v => [v.id, v.nodes[0].html]))"""
# The page handles the event before the listener that is added here.
GO_TO = """view => location.hash === view || new Promise((done) => {
  addEventListener("hashchange", () => done(), { once: true });
  location.hash = view;
})"""


class Visit:
    """A page in a window of its own, and what it logged and requested. The methods are for the explorer."""

    def __init__(self, context, address):
        self.context, self.address, self.page = context, address, context.new_page()
        self.messages, self.urls = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.urls.append(request.url))

    def sign_in(self, key):
        """Open the link that `make run` prints."""
        self.page.goto(f"{self.address}#key={key}")
        return self.wait()

    def open(self, view):
        """Go to a view and wait for it."""
        self.page.evaluate(GO_TO, view)
        return self.wait()

    def wait(self, title=".+"):
        """Wait until a view with this heading is there; return its heading."""
        heading = self.page.locator("main:not([aria-busy]) h1", has_text=re.compile(title))
        heading.wait_for()
        return heading.inner_text()

    def view(self):
        """Return the view of the address and its parameters, but for the dates that every view of dates has."""
        return re.sub(r"(start|end|at)=[\d-]{10}(&|$)", "", self.page.evaluate("location.hash")).rstrip("?&")

    def text(self, selector="main"):
        """Return the text of the element."""
        return self.page.locator(selector).first.inner_text().replace("\xa0", " ")
