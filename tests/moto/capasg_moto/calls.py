"""The log of calls: one JSON object per line, without credentials, parameters or answers."""

import io
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from urllib.parse import parse_qs

_ERROR = re.compile(rb"<Code>([A-Za-z0-9_.]+)</Code>|\"__type\"\s*:\s*\"(?:[^\"#]*#)?([A-Za-z0-9_.]+)\"")
_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/([^/]+)/([^/]+)/aws4_request")


class Calls:
    """Wraps a WSGI application; serves one request at a time, since moto's models are not safe for threads."""

    def __init__(self, application: Callable, path: Path):
        self._application = application
        self._file = path.open("a", encoding="utf-8")
        self._lock = RLock()

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").startswith("/_capasg/"):
            with self._lock:
                return self._application(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        status = []

        def respond(line, headers, *more):
            status.append(int(line.split(" ", 1)[0]))
            return start_response(line, headers, *more)

        with self._lock:
            answer = b"".join(self._application(environ, respond))
            self._write(environ, body, status[-1] if status else 500, answer)
        return [answer]

    def _write(self, environ: dict, body: bytes, status: int, answer: bytes) -> None:
        scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        agent = environ.get("HTTP_X_AMZ_USER_AGENT") or environ.get("HTTP_USER_AGENT", "")
        call = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "service": scope.group(2) if scope else "",
            "region": scope.group(1) if scope else "",
            "action": _action(environ, body),
            "client": _client(agent, scope.group(2) if scope else ""),
            "userAgent": agent,
            "status": status,
        }
        if status >= 400:
            code = _ERROR.search(answer)
            call["error"] = (code.group(1) or code.group(2)).decode() if code else ""
        self._file.write(json.dumps(call) + "\n")
        self._file.flush()


def _action(environ: dict, body: bytes) -> str:
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return target.rsplit(".", 1)[-1]
    action = parse_qs(body[:4096].decode("utf-8", "replace")).get("Action")
    return action[0] if action else f"{environ.get('REQUEST_METHOD')} {environ.get('PATH_INFO')}"


def _client(agent: str, service: str) -> str:
    if "app/capasg" in agent:
        return "capasg"
    if "aws-sdk-go" not in agent:
        return "other"
    # CAPA names itself in the agent of the SDK, except where it reads images and types for an AWSMachineTemplate; the only other
    # program in Go makes a stack.
    return "clusterawsadm" if service == "cloudformation" else "capa"
