"""The page: headline figures, charts and tables. Whatever a user has written is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from angelhair.spark.columns import ACKED
from angelhair.spark.pipelines.report import charts
from angelhair.spark.pipelines.report.charts import HALF, WIDE, Line
from angelhair.spark.pipelines.report.figures import duration, exactly, moment, number, share, size
from angelhair.spark.pipelines.report.style import STYLE

if TYPE_CHECKING:
    from angelhair.spark.pipelines.insight.summary import Point, Summary

LOOKS = {"p50": "two", "p95": "three", "p99": "four"}


def page(summary: Summary, now_ms: int) -> str:
    parts = [_header(summary, now_ms), _tiles(summary, now_ms)]
    if summary.points:
        parts += _charts(summary)
    parts += [_states(summary), _poison(summary), *_values(summary)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(summary.queue)}: insight</title><style>{STYLE}</style></head><body><main>"
        + "\n".join(part for part in parts if part)
        + "</main></body></html>\n"
    )


def _header(summary: Summary, now_ms: int) -> str:
    said = "nothing has been put yet"
    if summary.points:
        first, last = summary.points[0].time_seconds, summary.points[-1].time_seconds + summary.step_seconds
        said = f"{moment(first * 1_000)[:-3]} to {moment(last * 1_000)[:-3]}"
    return f"<header><h1>{escape(summary.queue)}</h1><p>{said} · all times UTC · written {moment(now_ms)}</p></header>"


def _tiles(summary: Summary, now_ms: int) -> str:
    totals = summary.totals
    came, delivered = totals.get("came", 0), totals.get("delivered", 0)
    waiting = summary.now.get("waiting", 0)
    oldest = summary.oldest_waiting_ms
    waited = f"waiting now, the oldest {duration(max(0, now_ms - oldest))}" if oldest is not None else "waiting now"
    tiles = [
        (number(came), f"messages, {size(totals.get('bytes', 0))}"),
        (share(totals.get("acked", 0), came), f"acked: {exactly(totals.get('acked', 0))}"),
        (number(waiting), waited),
        (duration(summary.waits.get("p95")), f"waiting, p95; p50 {duration(summary.waits.get('p50'))}"),
        (duration(summary.works.get("p95")), f"processing, p95; p50 {duration(summary.works.get('p50'))}"),
        (share(totals.get("redelivered", 0), delivered), f"redelivered: {exactly(totals.get('redelivered', 0))}"),
        (number(totals.get("moved", 0)), "moved or dead-lettered"),
    ]
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{value}</b><span>{said}</span></div>' for value, said in tiles
    ) + "</div>"


def _charts(summary: Summary) -> list[str]:
    points = _without_gaps(summary)
    times = [time for time, _ in points]
    minutes = summary.step_seconds / 60

    def rate(*names: str) -> list[float | None]:
        return [0 if point is None else sum(point.counts[name] for name in names) / minutes for _, point in points]

    def percentiles(kind: str) -> list[Line]:
        return [
            Line(name, look, [None if point is None else getattr(point, kind)[name] for _, point in points])
            for name, look in LOOKS.items()
        ]

    flow = [Line("came in", "one", rate("came"), filled=True), Line("acked or moved", "two", rate("acked", "moved"))]
    again = Line("redeliveries", "three", [0 if point is None else point.counts["redelivered"] for _, point in points])
    step = "a minute" if minutes == 1 else f"{minutes:g} minutes"
    each = "Messages a minute" + ("" if minutes == 1 else f", each point {step}")
    waits, works = percentiles("waits"), percentiles("works")
    return [
        _section(
            "Throughput", each,
            charts.legend(flow) + charts.counts_over_time(WIDE, "Throughput", times, flow, number),
        ),
        '<div class="pair">',
        _section(
            "Waiting time", "From when it was due to its first delivery, by the minute of that",
            charts.legend(waits) + charts.durations_over_time(HALF, "Waiting time", times, waits),
        ),
        _section(
            "Processing time", "From its first delivery until it was acked or moved",
            charts.legend(works) + charts.durations_over_time(HALF, "Processing time", times, works),
        ),
        _section(
            "Redeliveries", f"Deliveries after the first, by when that was, each bar {step}",
            charts.bars_over_time(HALF, "Redeliveries", times, again, number),
        ),
        _section(
            "Body size", "Messages whose bodies have up to so many bytes",
            charts.histogram(HALF, "Body size", _sizes(summary), number),
        ),
        "</div>",
    ]


def _without_gaps(summary: Summary) -> list[tuple[int, Point | None]]:
    """Every step of the span; None where nothing happened."""
    known = {point.time_seconds: point for point in summary.points}
    first, last = summary.points[0].time_seconds, summary.points[-1].time_seconds
    # A chart of one step would be a dot in the middle of nowhere.
    first, last = (first, last) if last > first else (first - summary.step_seconds, last + summary.step_seconds)
    return [(time, known.get(time)) for time in range(first, last + 1, summary.step_seconds)]


def _sizes(summary: Summary) -> list[tuple[str, int]]:
    """From the smallest that there is to the largest, and one more on either side."""
    filled = [index for index, (_, count) in enumerate(summary.sizes) if count]
    if not filled:
        return []
    shown = summary.sizes[max(0, filled[0] - 1) : filled[-1] + 2]
    return [(size(border).replace(" ", "\u00a0"), count) for border, count in shown]


def _states(summary: Summary) -> str:
    parts = sorted(summary.now.items(), key=lambda item: -item[1])
    if not parts:
        return ""
    names = "".join(
        f'<span class="share{index}">{escape(name)} {exactly(count)}</span>'
        for index, (name, count) in enumerate(parts)
    )
    return _section(
        "Now", "Messages that are in no finished bucket, by state",
        f'<p class="legend">{names}</p>{charts.shares(parts)}',
    )


def _poison(summary: Summary) -> str:
    if not summary.poison:
        return _section("Delivered most often", "No message was delivered more than once", "")
    rows = [
        [
            f"<td>{escape(str(row['id']))}</td>",
            f'<td class="number">{exactly(row["deliveries"])}</td>',
            f'<td><span class="badge{"" if row["state"] == ACKED else " bad"}">{escape(str(row["state"]))}</span></td>',
            f'<td class="wide">{escape(_reason(row))}</td>',
            f"<td>{moment(row['enqueued_at'])}</td>",
            f'<td class="number">{duration(_took(row))}</td>',
        ]
        for row in summary.poison
    ]
    heads = ("id", "deliveries#", "state", "what became of it", "put", "until settled#")
    return _section("Delivered most often", "What comes again and again may be poison", _table(heads, rows))


def _reason(row: dict[str, Any]) -> str:
    moved = row.get("moved_to")
    if moved:
        label, _, queue, _, lane, to = (*str(moved).split("/"), "", "", "", "", "", "")[:6]
        what = "used up its deliveries: to" if label == "dead" else "moved to"
        return f"{what} {queue}, as {lane}-{to}"
    return "acked in the end" if row["state"] == ACKED else "not settled"


def _took(row: dict[str, Any]) -> int | None:
    begin, end = row.get("first_delivered_at"), row.get("settled_at")
    return None if begin is None or end is None else max(0, end - begin)


def _values(summary: Summary) -> list[str]:
    if not summary.values:
        return []
    sections = []
    for name, values in summary.values.items():
        kind, _, said = name.partition(" ")
        most = max(count for _, count in values)
        rows = [
            [
                f'<td class="name" title="{escape(value)}">{escape(value)}</td>',
                f'<td class="bar"><span class="meter" style="width:{100 * count / most:.1f}%"></span></td>',
                f'<td class="number">{exactly(count)}</td>',
            ]
            for value, count in values
        ]
        what = "Messages by attribute" if kind == "group" else "Messages by field of the body"
        sections.append(_section(said, what, _table(("value", "", "messages#"), rows)))
    return ['<div class="pair">', *sections, "</div>"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading that ends in # is one of numbers."""
    head = "".join(
        f'<th class="number">{text[:-1]}</th>' if text.endswith("#") else f"<th>{text}</th>" for text in heads
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _section(title: str, note: str, inside: str) -> str:
    return f'<section><h2>{escape(title)}</h2><p class="note">{escape(note)}</p>{inside}</section>'
