"""Starts the server: `python -m capasg_moto --port 5000 --calls calls.jsonl`."""

import argparse
import logging
import os
from pathlib import Path


def main() -> None:
    """Parses the arguments and serves until the process ends."""
    parser = argparse.ArgumentParser(prog="capasg_moto", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls", type=Path, required=True, help="file of the call log, JSON lines")
    parser.add_argument("--uncorrected", action="store_true", help="serves moto as it is")
    arguments = parser.parse_args()

    # moto reads these when it is imported. Unknown instance types and images are errors, as in AWS.
    os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"
    os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
    os.environ["MOTO_PORT"] = str(arguments.port)
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    from . import corrections
    from .calls import Calls
    from .world import World

    if not arguments.uncorrected:
        corrections.install()
    # The call log takes the place of the server's own lines.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = Calls(World(DomainDispatcherApplication(create_backend_app)), arguments.calls)
    server = make_server(
        arguments.host, arguments.port, application, threaded=True, request_handler=MotoRequestHandler
    )
    server.serve_forever()


if __name__ == "__main__":
    main()
