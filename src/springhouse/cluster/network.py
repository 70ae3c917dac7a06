"""How do messages get from node to node?

Nodes use gRPC with protobuf messages (`wire`), one call per message. The answer to a call only says
that the message arrived. Sending never waits: a message that can't be delivered within its deadline
is lost, and the protocol allows for that. The channel to a node that is away tries again with
growing pauses. A node checks that a message comes from its own cluster before it uses any of it.
Refused messages appear in the log, each kind once a minute.
"""

import logging
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from springhouse.cluster import wire
from springhouse.cluster.cluster_report import ClusterReport, NodeReport
from springhouse.cluster.log_throttle import LogThrottle
from springhouse.cluster.members import Credentials, Members
from springhouse.cluster.messages import Message
from springhouse.errors import SpringhouseError
from springhouse.units import Instant, Seconds

LOG = logging.getLogger("springhouse.cluster")

SERVICE = "springhouse.cluster.Cluster"
_MOST_RUNNING_CALLS = 16
"""A node that has not answered so many calls gets no more until some of them time out."""


@dataclass(frozen=True)
class MessageLimits:
    """How long a call may take, and how large a message may be: 100,000 units are 8 MB."""

    call_seconds: Seconds = Seconds(1.0)
    longest_pause_seconds: Seconds = Seconds(1.0)
    most_bytes: int = 32 * 2**20


LIMITS = MessageLimits()


class Endpoint(Protocol):
    """The node behind a network; called from many threads."""

    def received(self, sender: str, message: Message) -> None:
        """Take in a message of a peer."""
        ...

    def describe(self) -> NodeReport:
        """The report of this node."""
        ...

    def drain(self, node: str, drained: bool) -> str:
        """Have a node drained, or not any more; return the leader that carries it out."""
        ...


class PeerChannel:
    """The gRPC channel to one node; made once, used by many threads."""

    def __init__(
        self,
        cluster: str,
        address: str,
        credentials: Credentials | None,
        limits: MessageLimits = LIMITS,
    ) -> None:
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", limits.most_bytes),
            ("grpc.max_receive_message_length", limits.most_bytes),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", round(1000 * limits.call_seconds)),
            ("grpc.max_reconnect_backoff_ms", round(1000 * limits.longest_pause_seconds)),
            # A machine that loses its power does not close its connections.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 2_000),
            ("grpc.enable_http_proxy", 0),
            # Each channel has a connection of its own, with pauses of its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.address = address
        self._seconds = limits.call_seconds
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            options.append(("grpc.ssl_target_name_override", cluster))
            tls = grpc.ssl_channel_credentials(
                credentials.authority, credentials.key, credentials.certificate
            )
            self._channel = grpc.secure_channel(address, tls, options)
        self._methods: dict[str, Any] = {
            name: self._channel.unary_unary(f"/{SERVICE}/{name}")
            for name in ("Deliver", "Describe", "Status", "AskToDrain")
        }

    def call(self, method: str, request: bytes, seconds: float | None = None) -> bytes:
        """The answer to a request; a `SpringhouseError` if there is none."""
        try:
            return bytes(self._methods[method](request, timeout=seconds or self._seconds))
        except grpc.RpcError as error:
            raise SpringhouseError(format_call_error(error), where=self.address) from None

    def post(self, request: bytes) -> Any:
        """Send a message without waiting; return the running call."""
        return self._methods["Deliver"].future(request, timeout=self._seconds)

    def close(self) -> None:
        """Cancel the running calls, and disconnect."""
        self._channel.close()


def format_call_error(error: grpc.RpcError) -> str:
    """The problem of a failed call in one line."""
    code, details = error.code(), str(error.details())
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "it does not answer"
    if code is grpc.StatusCode.UNAVAILABLE:
        reason = details.rpartition("last error: ")[2]
        if "andshake" in reason:
            return f"its certificate does not prove that it is of this cluster ({reason})"
        if "Socket closed" in reason:
            return "it closed the connection: it is stopping, or it does not accept our certificate"
        return f"it can't be reached ({reason})"
    return details


class Network:
    """The channels to all peers, and the server for their calls."""

    def __init__(
        self,
        members: Members,
        endpoint: Endpoint,
        clock: Callable[[], Instant],
        limits: MessageLimits = LIMITS,
    ) -> None:
        self._members = members
        self._endpoint = endpoint
        self._limits = limits
        self._clock = clock
        self._throttle = LogThrottle()
        self._channels: dict[str, PeerChannel] = {}
        self._running_calls = dict.fromkeys(members.peers, 0)
        self._lock = threading.Lock()
        self._server = self._make_server()

    @property
    def channels(self) -> Mapping[str, PeerChannel]:
        """The channel to each peer."""
        return self._channels

    def start(self) -> None:
        """Start the server, and open a channel to each peer."""
        for name, address in self._members.peers.items():
            credentials = self._members.credentials
            self._channels[name] = PeerChannel(
                self._members.cluster, address, credentials, self._limits
            )
        self._server.start()

    def stop(self) -> None:
        """Stop the server, and close all channels."""
        self._server.stop(grace=0.2).wait(timeout=2.0)
        for channel in self._channels.values():
            channel.close()

    # --- Out ------------------------------------------------------------------------------------

    def send(self, to: str, message: Message) -> None:
        """Send a message; it may be lost."""
        with self._lock:
            if self._running_calls[to] >= _MOST_RUNNING_CALLS:
                return
            self._running_calls[to] += 1
        data = wire.encode_message(self._members.cluster, self._members.name, to, message)
        try:
            call = self._channels[to].post(data)
        except ValueError:  # The channel is closed, because this node stops.
            return
        call.add_done_callback(lambda done: self._finish_call(to, done))

    def _finish_call(self, to: str, call: Any) -> None:
        with self._lock:
            self._running_calls[to] -= 1
        if call.code() is grpc.StatusCode.OK or call.cancelled():
            return
        problem = format_call_error(call)
        address = self._members.peers[to]
        self._warn((to, problem), f"node {to} ({address}) does not get messages: {problem}")

    def _warn(self, kind: Hashable, text: str) -> None:
        with self._lock:
            line = self._throttle.throttle(kind, text, self._clock())
        if line is not None:
            LOG.warning(line)

    def report(self) -> ClusterReport:
        """The report of the cluster; this node asks all others."""
        question = wire.encode_question(self._members.cluster)
        reports, problems = [self._endpoint.describe()], {}

        def ask(name: str) -> NodeReport:
            return wire.decode_node_report(self._channels[name].call("Describe", question))

        with ThreadPoolExecutor(max_workers=max(len(self._channels), 1)) as pool:
            for name, answer in {name: pool.submit(ask, name) for name in self._channels}.items():
                try:
                    reports.append(answer.result())
                except SpringhouseError as error:
                    problems[name] = error.problem
        reports.sort(key=lambda report: report.name)
        return ClusterReport(self._members.name, tuple(reports), problems)

    # --- In -------------------------------------------------------------------------------------

    def _make_server(self) -> Any:
        members, limits = self._members, self._limits
        server = grpc.server(
            ThreadPoolExecutor(max_workers=8, thread_name_prefix="cluster"),
            options=[
                ("grpc.max_receive_message_length", limits.most_bytes),
                ("grpc.max_send_message_length", limits.most_bytes),
                ("grpc.max_metadata_size", 8192),
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
            ],
            maximum_concurrent_rpcs=256,
        )
        handlers = {
            "Deliver": self._deliver,
            "Describe": self._describe,
            "Status": self._status,
            "AskToDrain": self._drain,
        }
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    SERVICE,
                    {
                        # A stream of one message: gRPC refuses a message that is too large before
                        # a handler runs, and only a handler that reads a stream can notice that.
                        name: grpc.stream_unary_rpc_method_handler(self._guard(handler))
                        for name, handler in handlers.items()
                    },
                ),
            )
        )
        try:
            if members.credentials is None:
                server.add_insecure_port(members.listen)
            else:
                credentials = members.credentials
                tls = grpc.ssl_server_credentials(
                    [(credentials.key, credentials.certificate)],
                    credentials.authority,
                    require_client_auth=True,
                )
                server.add_secure_port(members.listen, tls)
        except RuntimeError:
            raise SpringhouseError(
                f'node "{members.name}" can\'t listen on {members.listen}',
                hint="Another program listens there, or this machine does not have that address.",
            ) from None
        return server

    def _guard(self, handler: Callable[[bytes], bytes]) -> Callable[[Iterator[bytes], Any], bytes]:
        def handle(requests: Iterator[bytes], context: Any) -> bytes:
            # Without the port, which changes with every connection. And before the message is read:
            # when a call is over, gRPC does not know its peer any more.
            peer = context.peer().rpartition(":")[0]
            try:
                self._check_certificate(context)
                return handler(self._read_message(requests))
            except wire.MessageRefused as refused:
                problem, code = refused.problem, grpc.StatusCode.PERMISSION_DENIED
                hint = f". {refused.hint}" if refused.hint else ""
                self._warn((peer, problem), f"refused a message from {peer}: {problem}{hint}")
            except SpringhouseError as error:
                problem, code = error.problem, grpc.StatusCode.FAILED_PRECONDITION
            context.abort(code, problem)
            raise AssertionError("abort raises")

        return handle

    def _read_message(self, requests: Iterator[bytes]) -> bytes:
        """The message of a call."""
        try:
            return next(requests)
        except (grpc.RpcError, StopIteration):  # Either may come first.
            most = self._limits.most_bytes
            raise wire.MessageRefused(
                f"the message has more than {most:,} bytes, or is incomplete"
            ) from None

    def _check_certificate(self, context: Any) -> None:
        """Refuse a certificate of another cluster; TLS has checked already who signed it."""
        if self._members.credentials is None:
            return
        peer = context.auth_context()
        names = peer.get("x509_subject_alternative_name", [])
        if self._members.cluster.encode() not in names:
            valid_for = ", ".join(sorted(name.decode(errors="replace") for name in names))
            raise wire.MessageRefused(
                f"the certificate is for {valid_for or 'nothing'}, not for the cluster "
                f'"{self._members.cluster}"',
                hint="A node's certificate must have the cluster's name among its DNS names.",
            )

    def _deliver(self, request: bytes) -> bytes:
        members = self._members
        sender, message = wire.decode_message(request, members.cluster, members.name, members.peers)
        self._endpoint.received(sender, message)
        return b""

    def _describe(self, request: bytes) -> bytes:
        wire.check_question(request, self._members.cluster)
        return wire.encode_node_report(self._endpoint.describe())

    def _status(self, request: bytes) -> bytes:
        wire.check_question(request, self._members.cluster)
        return wire.encode_cluster_report(self.report())

    def _drain(self, request: bytes) -> bytes:
        node, drained = wire.decode_drain(request, self._members.cluster)
        return wire.encode_drain_taken(self._endpoint.drain(node, drained))
