"""One gRPC call: grpc_client.py ADDRESS METHOD [SIZE [COUNT [PAUSE]]]

Sends COUNT messages of SIZE bytes, PAUSE milliseconds apart; in a chat each waits for the answer to
the one before, and unary calls, one for each message, are made all at once. Prints, line by line: the status; its message; the server's name from the trailers;
number, length and hash of what was sent; the messages that came, the first 100 bytes of each.
"""

import hashlib
import sys
import threading
import time

import grpc

ADDRESS, METHOD = sys.argv[1:3]
SIZE, COUNT, PAUSE = [int(arg) for arg in sys.argv[3:]] + [5, 1, 0][len(sys.argv) - 3 :]
OPTIONS = [
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),
]


def message(number):
    block = hashlib.sha256(b"%d" % number).digest()
    return (block * (SIZE // len(block) + 1))[:SIZE]


MESSAGES = [message(number) for number in range(COUNT)]
HEARD = threading.Semaphore(1)


def requests():
    for data in MESSAGES:
        if METHOD == "chat":
            HEARD.acquire(timeout=8)
        yield data
        time.sleep(PAUSE / 1000)


def call(channel, got):
    path = "/t.T/" + METHOD
    if METHOD == "unary":
        ask = channel.unary_unary(path)
        calls = [ask.future(data, timeout=8) for data in MESSAGES]
        got.extend(end.result() for end in calls)
        return calls[-1]
    if METHOD in ("refuse", "sleep_first", "die_first"):
        answer, end = channel.unary_unary(path).with_call(MESSAGES[0], timeout=8)
        got.append(answer)
        return end
    if METHOD == "upload":
        answer, end = channel.stream_unary(path).with_call(requests(), timeout=8)
        got.append(answer)
        return end
    if METHOD == "chat":
        end = channel.stream_stream(path)(requests(), timeout=8)
    else:
        end = channel.unary_stream(path)(MESSAGES[0], timeout=8)
    for answer in end:
        got.append(answer)
        HEARD.release()
    return end


def main():
    got = []
    with grpc.insecure_channel(ADDRESS, OPTIONS) as channel:
        try:
            end = call(channel, got)
        except grpc.RpcError as error:
            end = error
        print(end.code().name)
        print(end.details())
        print(dict(end.trailing_metadata() or ()).get("x-server", "-"))
        data = b"".join(MESSAGES)
        print(len(MESSAGES), len(data), hashlib.sha256(data).hexdigest())
        for answer in got:
            print(answer[:100].decode())


main()
