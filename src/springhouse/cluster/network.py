"""How do messages get from node to node?

gRPC with our own protobuf messages (`wire`), one call per message; the answer to a call only says
that it came. Sending never waits: a message that can't be delivered within its deadline is lost,
which the protocol expects, and the channel to a node that is away tries again with growing pauses.
What comes is proven to be of this cluster before anybody acts on it, and what is refused is told in
the log, each kind once a minute.
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
from springhouse.cluster.complaints import LogThrottle
from springhouse.cluster.members import Credentials, Members
from springhouse.cluster.messages import Message
from springhouse.errors import SpringhouseError
from springhouse.units import Instant, Seconds

LOG = logging.getLogger("springhouse.cluster")

SERVICE = "springhouse.cluster.Cluster"
_MOST_UNDER_WAY = 16
"""Calls to one node at a time: who does not answer so many gets no more until some time out."""


@dataclass(frozen=True)
class MessageLimits:
    """What a call may take, and what a message may weigh: 100,000 units are 8 MB."""

    call_seconds: Seconds = Seconds(1.0)
    longest_pause_seconds: Seconds = Seconds(1.0)
    most_bytes: int = 32 * 2**20


LIMITS = MessageLimits()


class Answers(Protocol):
    """What a network needs of the node behind it; called from many threads."""

    def received(self, sender: str, message: Message) -> None:
        """A message of a peer came."""
        ...

    def describe(self) -> NodeReport:
        """How this node is."""
        ...

    def drain(self, node: str, drained: bool) -> str:
        """See to it that a node is drained, or not any more; which leader does."""
        ...


class PeerChannel:
    """The way to one node; made once, used by many threads."""

    def __init__(
        self, cluster: str, address: str, papers: Credentials | None, limits: MessageLimits = LIMITS
    ) -> None:
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", limits.most_bytes),
            ("grpc.max_receive_message_length", limits.most_bytes),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", round(1000 * limits.call_seconds)),
            ("grpc.max_reconnect_backoff_ms", round(1000 * limits.longest_pause_seconds)),
            # A machine that vanished does not close its connections.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 2_000),
            ("grpc.enable_http_proxy", 0),
            # Each line has a connection of its own, with pauses of its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.address = address
        self._seconds = limits.call_seconds
        if papers is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            options.append(("grpc.ssl_target_name_override", cluster))
            shown = grpc.ssl_channel_credentials(papers.authority, papers.key, papers.certificate)
            self._channel = grpc.secure_channel(address, shown, options)
        self._methods: dict[str, Any] = {
            name: self._channel.unary_unary(f"/{SERVICE}/{name}")
            for name in ("Deliver", "Describe", "Status", "AskToDrain")
        }

    def call(self, method: str, request: bytes, seconds: float | None = None) -> bytes:
        """The answer; a `SpringhouseError` that says why there is none."""
        try:
            return bytes(self._methods[method](request, timeout=seconds or self._seconds))
        except grpc.RpcError as error:
            raise SpringhouseError(problem_of(error), where=self.address) from None

    def post(self, request: bytes) -> Any:
        """Send a message, and do not wait: the call that is under way."""
        return self._methods["Deliver"].future(request, timeout=self._seconds)

    def close(self) -> None:
        """End all that is under way."""
        self._channel.close()


def problem_of(error: grpc.RpcError) -> str:
    """What went wrong with a call, in one line."""
    code, details = error.code(), str(error.details())
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "it does not answer"
    if code is grpc.StatusCode.UNAVAILABLE:
        reason = details.rpartition("last error: ")[2]
        if "andshake" in reason:
            return f"it has not proven to be of this cluster ({reason})"
        if "Socket closed" in reason:
            return "it hung up: it ends, or it does not accept what we show as our certificate"
        return f"it can't be reached ({reason})"
    return details


class Network:
    """The lines to all peers, and the door for what they send."""

    def __init__(
        self,
        members: Members,
        answers: Answers,
        clock: Callable[[], Instant],
        limits: MessageLimits = LIMITS,
    ) -> None:
        self._members = members
        self._answers = answers
        self._limits = limits
        self._clock = clock
        self._complaints = LogThrottle()
        self._lines: dict[str, PeerChannel] = {}
        self._under_way = dict.fromkeys(members.peers, 0)
        self._lock = threading.Lock()
        self._server = self._serving()

    @property
    def lines(self) -> Mapping[str, PeerChannel]:
        """The way to each peer."""
        return self._lines

    def start(self) -> None:
        """Begin to listen, and to reach out."""
        for name, address in self._members.peers.items():
            papers = self._members.papers
            self._lines[name] = PeerChannel(self._members.cluster, address, papers, self._limits)
        self._server.start()

    def stop(self) -> None:
        """Hang up."""
        self._server.stop(grace=0.2).wait(timeout=2.0)
        for line in self._lines.values():
            line.close()

    # --- Out ------------------------------------------------------------------------------------

    def send(self, to: str, message: Message) -> None:
        """Send a message; it may be lost."""
        with self._lock:
            if self._under_way[to] >= _MOST_UNDER_WAY:
                return
            self._under_way[to] += 1
        data = wire.sealed(self._members.cluster, self._members.name, to, message)
        try:
            call = self._lines[to].post(data)
        except ValueError:  # The channel is closed: we are leaving.
            return
        call.add_done_callback(lambda done: self._sent(to, done))

    def _sent(self, to: str, call: Any) -> None:
        with self._lock:
            self._under_way[to] -= 1
        if call.code() is grpc.StatusCode.OK or call.cancelled():
            return
        problem = problem_of(call)
        address = self._members.peers[to]
        self._complain((to, problem), f"node {to} ({address}) gets no messages: {problem}")

    def _complain(self, kind: Hashable, text: str) -> None:
        with self._lock:
            told = self._complaints.worth_telling(kind, text, self._clock())
        if told is not None:
            LOG.warning(told)

    def report(self) -> ClusterReport:
        """How all nodes are, each asked by this one."""
        asked = wire.question(self._members.cluster)
        reports, problems = [self._answers.describe()], {}

        def ask(name: str) -> NodeReport:
            return wire.to_node_report(self._lines[name].call("Describe", asked))

        with ThreadPoolExecutor(max_workers=max(len(self._lines), 1)) as pool:
            for name, answer in {name: pool.submit(ask, name) for name in self._lines}.items():
                try:
                    reports.append(answer.result())
                except SpringhouseError as error:
                    problems[name] = error.problem
        reports.sort(key=lambda each: each.name)
        return ClusterReport(self._members.name, tuple(reports), problems)

    # --- In -------------------------------------------------------------------------------------

    def _serving(self) -> Any:
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
                        # As a stream of one message: gRPC refuses what is too large before it is
                        # read, and only whoever waits for the next message gets to know of it.
                        name: grpc.stream_unary_rpc_method_handler(self._guarded(handler))
                        for name, handler in handlers.items()
                    },
                ),
            )
        )
        try:
            if members.papers is None:
                server.add_insecure_port(members.listen)
            else:
                papers = members.papers
                shown = grpc.ssl_server_credentials(
                    [(papers.key, papers.certificate)], papers.authority, require_client_auth=True
                )
                server.add_secure_port(members.listen, shown)
        except RuntimeError:
            raise SpringhouseError(
                f'node "{members.name}" can\'t listen on {members.listen}',
                hint="Another program listens there, or the address is not this machine's.",
            ) from None
        return server

    def _guarded(
        self, handler: Callable[[bytes], bytes]
    ) -> Callable[[Iterator[bytes], Any], bytes]:
        def handle(requests: Iterator[bytes], context: Any) -> bytes:
            # Without the port, which is another one with every connection; and before the message,
            # since nobody knows any more who it was when a call is over.
            peer = context.peer().rpartition(":")[0]
            try:
                self._prove_papers(context)
                return handler(self._first(requests))
            except wire.MessageRefused as refused:
                problem, code = refused.problem, grpc.StatusCode.PERMISSION_DENIED
                hint = f". {refused.hint}" if refused.hint else ""
                self._complain((peer, problem), f"{peer} was refused: {problem}{hint}")
            except SpringhouseError as error:
                problem, code = error.problem, grpc.StatusCode.FAILED_PRECONDITION
            context.abort(code, problem)
            raise AssertionError("abort raises")

        return handle

    def _first(self, requests: Iterator[bytes]) -> bytes:
        """The message of a call."""
        try:
            return next(requests)
        except (grpc.RpcError, StopIteration):  # Which one it is depends on who is first to see it.
            most = self._limits.most_bytes
            raise wire.MessageRefused(
                f"its message has more than {most:,} bytes, or broke off"
            ) from None

    def _prove_papers(self, context: Any) -> None:
        """The certificate is signed by our authority, or TLS had failed: is it of this cluster?"""
        if self._members.papers is None:
            return
        shown = context.auth_context()
        names = shown.get("x509_subject_alternative_name", [])
        if self._members.cluster.encode() not in names:
            told = ", ".join(sorted(name.decode(errors="replace") for name in names)) or "nothing"
            raise wire.MessageRefused(
                f'its certificate is of {told}, not of the cluster "{self._members.cluster}"',
                hint="A node's certificate has the cluster's name among its DNS names.",
            )

    def _deliver(self, request: bytes) -> bytes:
        members = self._members
        sender, message = wire.opened(request, members.cluster, members.name, members.peers)
        self._answers.received(sender, message)
        return b""

    def _describe(self, request: bytes) -> bytes:
        wire.understood(request, self._members.cluster)
        return wire.node_report(self._answers.describe())

    def _status(self, request: bytes) -> bytes:
        wire.understood(request, self._members.cluster)
        return wire.cluster_report(self.report())

    def _drain(self, request: bytes) -> bytes:
        node, drained = wire.to_drain(request, self._members.cluster)
        return wire.drain_taken(self._answers.drain(node, drained))
