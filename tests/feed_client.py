"""A client of the change feed, written from the contract, and what its copy has to equal."""


class Client:
    """A client of the feed with its copy, the trips by trip_id."""

    def __init__(self, service, limit=2):
        self.service, self.limit, self.cursor, self.copy = service, limit, None, {}
        # The cursors that requests have been made with.
        self.cursors = []

    def get_page(self):
        """Apply the next page, and return it."""
        self.cursors.append(self.cursor)
        query = {"limit": self.limit, **({"cursor": self.cursor} if self.cursor else {})}
        response = self.service.get("/changes", **query)
        assert response.status_code == 200, response.text
        for change in response.json["changes"]:
            self.copy.pop(change["trip_id"], None)
            if not change["deleted"]:
                self.copy[change["trip_id"]] = change["trip"]
        self.cursor = response.json["cursor"]
        return response.json

    def lose(self, pages=1):
        """Go back to the cursor from before so many pages, and keep the copy, but at the beginning."""
        self.cursor = self.cursors[-pages]
        self.copy = self.copy if self.cursor else {}

    def sync(self):
        """Apply all pages, and return the changes as pairs of trip_id and `deleted`."""
        pages = [self.get_page()]
        while pages[-1]["has_more"]:
            pages.append(self.get_page())
        return [(change["trip_id"], change["deleted"]) for page in pages for change in page["changes"]]


def find_listed_trips(service, start_date):
    """Return the trips since a date in the lists of all drivers, by trip_id, of up to 100 drivers with 100 trips."""
    trips = {}
    for driver in service.get("/drivers", limit=100).json["drivers"]:
        page = service.get(f"/driver/{driver['driver_id']}/trips", start_date=start_date, limit=100).json
        assert page["next_page"] is None
        trips |= {trip["trip_id"]: trip for trip in page["trips"]}
    return trips
