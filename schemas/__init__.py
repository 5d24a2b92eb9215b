"""The shapes of the service, each written once, here."""
