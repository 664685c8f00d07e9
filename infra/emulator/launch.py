"""Starts the emulator without two pauses that every call of a function would pay, 90 ms of 95."""

import socketserver

from ministack.app import main
from ministack.core.lambda_runtime import Worker

# The server that hands events to a function writes head and body apart, and the kernel holds the body back until the
# function has acknowledged the head, which it does 40 ms later (Nagle's algorithm against delayed acknowledgement).
socketserver.StreamRequestHandler.disable_nagle_algorithm = True

# After a call the emulator waits up to 50 ms for the first log line of a function that may have none to say. A line
# that comes later than this is logged with the next call instead.
Worker._drain_stderr_bounded.__defaults__ = (0.001, 0.001, 0.05)

main()
