"""What a collector counts, in Prometheus's text form: requests and reports, nothing of people."""

from __future__ import annotations

import threading
import time
from collections import Counter

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counters that several threads may add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.time()
        self._requests: Counter[str] = Counter()  # by the problem's name, or ok
        self._reports: Counter[str] = Counter()  # stored, duplicate
        self._commits: Counter[float] = Counter()
        self._commit_count, self._commit_seconds = 0, 0.0

    def answered(self, name: str) -> None:
        """A request to take reports, by how it ended."""
        self._requests[name] += 1

    def taken(self, stored: int, duplicates: int) -> None:
        """Reports that were thanked for."""
        self._reports["stored"] += stored
        self._reports["duplicate"] += duplicates

    def committed(self, seconds: float) -> None:
        """One transaction."""
        with self._lock:
            self._commit_count += 1
            self._commit_seconds += seconds
            self._commits[next((top for top in _BUCKETS if seconds <= top), float("inf"))] += 1

    def text(self, waiting_bytes: int, damaged: int) -> str:
        """Everything, a line each."""
        with self._lock:
            commits, count, seconds = dict(self._commits), self._commit_count, self._commit_seconds
        lines = [
            "# HELP sottovoce_report_requests_total Requests to take reports, by how they ended.",
            "# TYPE sottovoce_report_requests_total counter",
            *(
                f'sottovoce_report_requests_total{{outcome="{name}"}} {n}'
                for name, n in sorted(self._requests.items())
            ),
            "# HELP sottovoce_reports_total Reports acknowledged.",
            "# TYPE sottovoce_reports_total counter",
            *(
                f'sottovoce_reports_total{{outcome="{name}"}} {n}'
                for name, n in sorted(self._reports.items())
            ),
            "# HELP sottovoce_waiting_bytes Memory of reports that are not durable yet.",
            "# TYPE sottovoce_waiting_bytes gauge",
            f"sottovoce_waiting_bytes {waiting_bytes}",
            "# HELP sottovoce_damaged_reports Reports that were acknowledged and cannot be counted "
            "any more.",
            "# TYPE sottovoce_damaged_reports gauge",
            f"sottovoce_damaged_reports {damaged}",
            "# HELP sottovoce_commit_seconds Time to check and commit a group of reports.",
            "# TYPE sottovoce_commit_seconds histogram",
        ]
        below = 0
        for top in _BUCKETS:
            below += commits.get(top, 0)
            lines.append(f'sottovoce_commit_seconds_bucket{{le="{top}"}} {below}')
        lines += [
            f'sottovoce_commit_seconds_bucket{{le="+Inf"}} {count}',
            f"sottovoce_commit_seconds_sum {seconds:.6f}",
            f"sottovoce_commit_seconds_count {count}",
            "# HELP sottovoce_start_time_seconds When this collector started.",
            "# TYPE sottovoce_start_time_seconds gauge",
            f"sottovoce_start_time_seconds {self._started:.3f}",
        ]
        return "\n".join(lines) + "\n"
