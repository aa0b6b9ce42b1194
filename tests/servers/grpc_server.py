"""A gRPC server for gateways.rs: grpc_server.py NAME ADDRESS LOG [KEY CERTIFICATE]

Messages are plain bytes, so that nothing has to be generated. A line of the log for each call tells
what was asked.
"""

import hashlib
import os
import sys
import threading
import time
from concurrent import futures

import grpc

NAME, ADDRESS, LOG, *TLS = sys.argv[1:]
LOCK = threading.Lock()


def seen(method, messages, context):
    data = b"".join(messages)
    text = "%s %s %d %d %s" % (
        NAME,
        method,
        len(messages),
        len(data),
        hashlib.sha256(data).hexdigest(),
    )
    with LOCK, open(LOG, "a", encoding="ascii") as log:
        log.write(text + "\n")
    context.set_trailing_metadata((("x-server", NAME),))
    return text.encode()


def unary(request, context):
    return seen("unary", [request], context)


def upload(requests, context):
    return seen("upload", list(requests), context)


def download(request, context):
    """As many messages as the request has bytes."""
    seen("download", [request], context)
    for number in range(len(request)):
        yield b"%s %d %s" % (NAME.encode(), number, b"x" * 20000)


def chat(requests, context):
    messages = []
    for request in requests:
        messages.append(request)
        yield b"%s heard %d" % (NAME.encode(), len(request))
    seen("chat", messages, context)


def refuse(request, context):
    seen("refuse", [request], context)
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now, says " + NAME)


def fail_late(request, context):
    seen("fail_late", [request], context)
    yield b"a message"
    context.abort(grpc.StatusCode.DATA_LOSS, "lost, says " + NAME)


def sleep_first(request, context):
    if NAME == "first":
        seen("sleep_first", [request], context)
        time.sleep(3)
    return seen("sleep_first", [request], context)


def die_first(request, context):
    if NAME == "first":
        seen("die_first", [request], context)
        os._exit(1)
    return seen("die_first", [request], context)


HANDLERS = {
    "/t.T/unary": grpc.unary_unary_rpc_method_handler(unary),
    "/t.T/upload": grpc.stream_unary_rpc_method_handler(upload),
    "/t.T/download": grpc.unary_stream_rpc_method_handler(download),
    "/t.T/chat": grpc.stream_stream_rpc_method_handler(chat),
    "/t.T/refuse": grpc.unary_unary_rpc_method_handler(refuse),
    "/t.T/fail_late": grpc.unary_stream_rpc_method_handler(fail_late),
    "/t.T/sleep_first": grpc.unary_unary_rpc_method_handler(sleep_first),
    "/t.T/die_first": grpc.unary_unary_rpc_method_handler(die_first),
}


class Handler(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return HANDLERS.get(handler_call_details.method)


def main():
    server = grpc.server(
        futures.ThreadPoolExecutor(8),
        handlers=[Handler()],
        options=[("grpc.max_receive_message_length", -1)],
    )
    if TLS:
        pair = [open(path, "rb").read() for path in TLS]
        server.add_secure_port(ADDRESS, grpc.ssl_server_credentials([pair]))
    else:
        server.add_insecure_port(ADDRESS)
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


main()
