"""How do threads run flows? The only module of this room that uses threads and clocks.

A pool has one thread per processor of its topology. A thread gets a step from the engine with the
lock held, and performs the step with no lock held. Arrow's kernels release the interpreter's lock
while they work, so threads do work in parallel. Each thread sleeps on its own binary semaphore.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter

from springhouse.errors import SpringhouseError
from springhouse.flows.endpoints import PackSink, Source, operators
from springhouse.flows.engine import Advice, Engine
from springhouse.flows.flow_graph import (
    FlowError,
    FlowGraph,
    FlowOperator,
    NodeKind,
    add_readers_and_writers,
)
from springhouse.flows.flow_settings import Settings
from springhouse.flows.item import StepResult
from springhouse.flows.monitor import FlowMeasurements, Monitor
from springhouse.flows.policies.first_come import FirstCome
from springhouse.flows.policies.locality import Locality
from springhouse.flows.policies.minimum_cost import MinimumCost
from springhouse.flows.policies.minimum_memory import MinimumMemory
from springhouse.flows.policies.mixed import Mixed
from springhouse.flows.policies.round_robin import RoundRobin
from springhouse.flows.policies.task_policy import TaskPolicy
from springhouse.flows.policy_choice import ExecutionPlan, PolicyName, execute_siss
from springhouse.flows.request import Request
from springhouse.flows.topology import Topology, free_memory, one_node, read_topology
from springhouse.units import Instant

BALANCE_SECONDS = 0.1


class SubmittedFlow:
    """A flow that a pool runs."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._over = threading.Event()
        self._at = Instant(0.0)

    def finished(self, at: Instant) -> None:
        """Wake the callers of `wait`: the flow has ended."""
        self._at = at
        self._over.set()

    def wait(self, patience_seconds: float | None = None) -> FlowMeasurements:
        """Wait for the end of the flow. Gives its measurements, or raises the flow's error."""
        if not self._over.wait(patience_seconds):
            raise FlowError(f"the flow did not end within {patience_seconds} seconds")
        return outcome_of(self.request, self._at)


class Pool:
    """Threads that run flows; use it in a `with`."""

    def __init__(self, settings: Settings, topology: Topology | None = None) -> None:
        self.settings = settings
        self.topology = topology or settings.topology()
        nodes = self.topology.threads()
        count = sum(map(len, nodes))
        self.times_slept = 0
        self.times_woken = 0
        self._all = threading.Semaphore(0)
        self._engine = Engine(policy_of(settings, self.topology, self._all.release), nodes)
        self._lock = threading.Lock()
        self._semaphores = [threading.Lock() for _ in range(count)]
        self._running: dict[int, SubmittedFlow] = {}
        self._closing = threading.Event()
        self._broken: BaseException | None = None
        work = self._work_simply if settings.policy is PolicyName.FIRST_COME else self._work
        self._threads = [
            threading.Thread(
                target=self._guarded,
                args=(work, thread, cpus),
                name=f"flow-{thread}",
                daemon=True,
            )
            for cpus, threads in zip(self.topology.nodes, nodes, strict=True)
            for thread in threads
        ]
        if len(nodes) > 1:
            balancer = threading.Thread(
                target=self._guarded, args=(self._balance,), name="flow-balance", daemon=True
            )
            self._threads.append(balancer)
        for semaphore in self._semaphores:
            semaphore.acquire()
        for worker in self._threads:
            worker.start()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *raised: object) -> None:
        self._closing.set()
        for semaphore in self._semaphores:
            # Release it even if its thread is awake: the thread may be just about to sleep.
            with self._lock:
                if semaphore.locked():
                    semaphore.release()
        for _ in self._threads:
            self._all.release()
        for worker in self._threads:
            worker.join(10)

    def submit(self, request: Request) -> SubmittedFlow:
        """Begin a flow. Other flows may run at the same time."""
        running = SubmittedFlow(request)
        with self._lock:
            request.failure = request.failure or self._broken
            if request.is_over:
                running.finished(clock())
                return running
            self._running[id(request)] = running
            advice = self._engine.submit(request)
        self._carry_out(advice)
        return running

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        """Let a thread work. If it fails, the running flows fail too, and don't wait for it."""
        try:
            work(*arguments)
        except BaseException as failure:  # noqa: BLE001  a dead thread's flows would never end
            with self._lock:
                self._broken = failure
                running, self._running = self._running, {}
            for flow in running.values():
                flow.request.failure = flow.request.failure or failure
                flow.finished(clock())

    def _work(self, thread: int, processors: tuple[int, ...]) -> None:
        self._settle(processors)
        result: StepResult | None = None
        seconds = 0.0
        while not self._closing.is_set():
            with self._lock:
                advice = self._engine.advance(thread, result, seconds, clock())
            self._carry_out(advice)
            result = None
            if advice.step is None:
                self.times_slept += 1
                self._semaphores[thread].acquire()
                with self._lock:
                    self._engine.note_awake(thread)
                continue
            began = perf_counter()
            result = advice.step.item.perform(advice.step.message)
            seconds = perf_counter() - began

    def _work_simply(self, thread: int, processors: tuple[int, ...]) -> None:
        """The simple scheduler's loop: one semaphore counts the tasks of all threads."""
        while True:
            self._all.acquire()
            if self._closing.is_set():
                return
            with self._lock:
                advice = self._engine.ask(thread, clock())
            self._carry_out(advice)
            while advice.step is not None:
                began = perf_counter()
                result = advice.step.item.perform(advice.step.message)
                seconds = perf_counter() - began
                with self._lock:
                    advice = self._engine.after(thread, result, seconds, clock())
                self._carry_out(advice)

    def _balance(self) -> None:
        while not self._closing.wait(BALANCE_SECONDS):
            with self._lock:
                advice = self._engine.balance() if any(self._engine.idle) else Advice()
            self._carry_out(advice)

    def _carry_out(self, advice: Advice) -> None:
        for thread in advice.wake:
            self.times_woken += 1
            self._semaphores[thread].release()
        for request in advice.over:
            running = self._running.pop(id(request), None)
            if running is not None:
                running.finished(clock())

    def _settle(self, processors: tuple[int, ...]) -> None:
        """Keep this thread on the processors of its node, not on one: 002 section 7 says why."""
        if len(self.topology.nodes) > 1 and hasattr(os, "sched_setaffinity"):
            usable = os.sched_getaffinity(0) & set(processors)
            if usable:
                os.sched_setaffinity(0, usable)


def clock() -> Instant:
    """Seconds that never go back."""
    return Instant(perf_counter())


def policy_of(
    settings: Settings, topology: Topology, announce: Callable[[], object] = lambda: None
) -> TaskPolicy:
    """The policy that the settings name."""
    makers: dict[PolicyName, Callable[[], TaskPolicy]] = {
        PolicyName.ROUND_ROBIN: RoundRobin,
        PolicyName.MINIMUM_COST: MinimumCost,
        PolicyName.MINIMUM_MEMORY: lambda: MinimumMemory(settings.slot_seconds),
    }
    makers[PolicyName.MIXED] = lambda: Mixed(makers)
    makers[PolicyName.LOCALITY] = lambda: Locality(topology.threads(), free_memory)
    threads = sum(map(len, topology.nodes))
    makers[PolicyName.FIRST_COME] = lambda: FirstCome(threads, announce)
    return makers[settings.policy]()


def request_of(
    graph: FlowGraph,
    sources: Mapping[str, Source],
    sinks: Mapping[str, PackSink],
    settings: Settings,
    *,
    traced: bool = False,
) -> Request:
    """A request that is ready to submit, with readers, writers and operators for the graph."""
    if not any(node.kind is NodeKind.READER for node in graph.nodes.values()):
        graph = add_readers_and_writers(graph)
    pack_bytes = settings.pack_bytes or read_topology().pack_bytes
    result = operators(graph, sources, sinks, pack_bytes)
    return make_request(graph, result, settings, traced=traced)


def make_request(
    graph: FlowGraph, made: Mapping[str, FlowOperator], settings: Settings, *, traced: bool = False
) -> Request:
    """A request that is ready to submit, for a graph with readers and writers already."""
    plan: ExecutionPlan | None = None
    if settings.policy is PolicyName.MIXED:
        plan = execute_siss(graph, settings.theta)
    now = clock()
    monitor = Monitor(now, curve=[], invoked=[]) if traced else Monitor(now)
    return Request(graph, made, now=now, limit=settings.queue_packs, plan=plan, monitor=monitor)


def run_flow(
    graph: FlowGraph,
    sources: Mapping[str, Source],
    sinks: Mapping[str, PackSink],
    settings: Settings = Settings(),  # noqa: B008  a frozen value
) -> FlowMeasurements:
    """Run a flow to its end: on this thread if one is enough, else on a pool."""
    request = request_of(graph, sources, sinks, settings)
    if settings.threads == 1:
        return run_here(request, settings)
    with Pool(settings) as pool:
        return pool.submit(request).wait()


def run_here(request: Request, settings: Settings) -> FlowMeasurements:
    """Run a flow on this thread."""
    topology = one_node(1)
    engine = Engine(policy_of(settings, topology), topology.threads())
    engine.submit(request)
    result: StepResult | None = None
    seconds = 0.0
    while not request.is_over:
        advice = engine.advance(0, result, seconds, clock())
        if advice.step is None:
            break
        began = perf_counter()
        result = advice.step.item.perform(advice.step.message)
        seconds = perf_counter() - began
    assert request.is_over, "a flow that is not over has something to do"
    return outcome_of(request, clock())


def outcome_of(request: Request, at: Instant) -> FlowMeasurements:
    """The measurements of an ended flow; raises the error that failed it."""
    failure = request.failure
    if failure is None:
        return request.measured(at)
    for item in request.items.values():
        close = getattr(item.rest, "close", None)
        if close is not None:
            # An error while an activity closes must not hide why the flow failed.
            with suppress(BaseException):
                close()
    # A KeyboardInterrupt comes from the user, not from the activity.
    if isinstance(failure, SpringhouseError | KeyboardInterrupt):
        raise failure
    blamed = "the flow" if request.failed_in is None else f'activity "{request.failed_in}"'
    raise FlowError(f"{blamed} failed: {type(failure).__name__}: {failure}") from failure
