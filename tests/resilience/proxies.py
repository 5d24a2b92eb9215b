"""The proxies as deploy/ ships them, on ports of their own."""

import re

from tests.resilience.processes import HOST, ROOT, WebServer, free_port, program

SHIPPED = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}
# Debian has nginx write what it cannot hold in memory to folders that are not everybody's.
FOLDERS = "".join(f"{kind}_temp_path {{0}}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


def shipped(kind, folder, ports):
    """Return the text of a shipped configuration, but for ports, folders, and whom it runs as."""
    text = (ROOT / "deploy" / SHIPPED[kind]).read_text()
    text = re.sub(r"127\.0\.0\.1:(\d+)", lambda match: f"{HOST}:{ports[int(match[1])]}", text)
    text = re.sub(r"^ *(user|group|chroot) .*\n", "", text, flags=re.MULTILINE)
    if kind == "nginx":
        text = text.replace("/var/log/nginx", str(folder)).replace("http {\n", f"http {{\n{FOLDERS.format(folder)}")
        # It would run as nobody, who cannot write to the folder.
        text = f"user root;\ndaemon off;\npid {folder}/nginx.pid;\n{text}"
    return text


class Proxy(WebServer):
    """HAProxy or nginx before two services, and two processes for agents, if there are any."""

    def __init__(self, folder, kind, services, agents=()):
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / SHIPPED[kind]
        behind = [process.port for process in (*services, *agents)]
        ports = dict(zip((8001, 8002, 8011, 8012), [*behind, free_port(), free_port()], strict=False))
        config.write_text(shipped(kind, folder, {8080: self.port, **ports}))
        words = {"haproxy": ["-W", "-f", config], "nginx": ["-c", config]}[kind]
        super().__init__(folder, kind, [program(kind), *words], lambda: self.get("/healthz").status == 200)
