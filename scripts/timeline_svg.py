#!/usr/bin/env python3
"""Draws some tracks of a timeline as an SVG, for documents.

  scripts/timeline_svg.py TIMELINE.json[.gz] -o OUT.svg "rank 0" links
  scripts/timeline_svg.py TIMELINE.json -o OUT.svg --passes "rank 0 " "rank 8 " "rank 16 " "rank 24 "

With --passes a row is a rank's compute track, and a block what it does for one micro-batch in one pass of a training
step, messages that it waits for on the way included.
"""
import argparse
import gzip
import html
import json
import pathlib
import re

COLOURS = {"compute": "#4c78a8", "delay": "#9ecae9", "wait": "#d8d8d8", "load": "#72b7b2"}
COMMUNICATION = "#f58518"
PASSES = {"forward": "#4c78a8", "backward": "#f58518", "input gradient": "#f58518", "weight gradient": "#54a24b"}
PASS = re.compile(rf"(?:, layer (\d+))?(?:, \w+)*, ({'|'.join(PASSES)}) (\d+)$")
LEFT, WIDTH, ROW = 110, 990, 26


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument("process", nargs="+", help="beginnings of process names, in order of drawing")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--passes", action="store_true", help="passes of micro-batches instead of operations")
    options = parser.parse_args()

    opened = gzip.open if options.timeline.suffix == ".gz" else open
    with opened(options.timeline, "rt") as file:
        trace = json.load(file)
    processes, threads, slices, loads = {}, {}, {}, {}
    for event in trace["traceEvents"]:
        if event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"]
        elif event["ph"] == "X":
            event.setdefault("cat", threads[event["pid"], event["tid"]])
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
        elif event["ph"] == "C":
            track = (event["pid"], event["name"])
            threads[track] = event["name"]
            loads.setdefault(track, []).append((event["ts"], event["args"]["%"]))
    for track, changes in loads.items():
        slices[track] = [{"ts": ts, "dur": end - ts, "name": f"{load:.3g} %", "cat": "load", "share": load / 100}
                         for (ts, load), (end, _) in zip(changes, changes[1:]) if load > 0]
    tracks = [track for wanted in options.process for track in threads
              if processes[track[0]].startswith(wanted) and track in slices]
    scale = WIDTH / trace["otherData"]["time_us"]
    if options.passes:
        tracks = [track for track in tracks if threads[track] == "compute"]
        rows = [(f"stage {i}", blocks(slices[track])) for i, track in enumerate(tracks)]
    else:
        rows = [(threads[track], [bar(event) for event in slices[track]]) for track in tracks]
    draw(options.output, rows, scale, trace["otherData"]["time_us"], legend(rows) if options.passes else [])


def bar(event):
    return {"ts": event["ts"], "dur": event["dur"], "name": event["name"], "label": event["name"],
            "colour": COLOURS.get(event["cat"], COMMUNICATION), "opacity": event.get("share", 1)}


def blocks(events):
    """Kernels in a row of one pass, micro-batch and chunk; chunks of a rank are told apart by gaps between layers."""
    found = [(event, PASS.search(event["name"])) for event in events if event["cat"] == "compute"]
    layers = sorted({int(match[1]) for _, match in found if match and match[1]})
    chunk_of, chunk = {}, -1
    for i, layer in enumerate(layers):
        chunk += i == 0 or layer > layers[i - 1] + 1
        chunk_of[layer] = chunk
    result, latest = [], None
    for event, match in found:
        if not match:
            continue
        # The embedding and the head belong to the layers beside them.
        key = (match[2], match[3])
        chunk = chunk_of[int(match[1])] if match[1] else None
        end = event["ts"] + event["dur"]
        if latest and latest["key"] == key and (chunk is None or latest["chunk"] in (None, chunk)):
            latest["dur"] = end - latest["ts"]
            if latest["chunk"] is None:
                latest["chunk"] = chunk
            continue
        latest = {"key": key, "chunk": chunk, "ts": event["ts"], "dur": event["dur"], "label": match[3],
                  "colour": PASSES[match[2]]}
        result.append(latest)
    for block in result:
        place = f", chunk {block['chunk']}" if chunk_of and max(chunk_of.values()) > 0 else ""
        block["name"] = f"{block['key'][0]} {block['key'][1]}{place}"
        block["opacity"] = 1 / (1 + 0.35 * (block["chunk"] or 0))
    return result


def legend(rows):
    used = {block["key"][0] for _, row in rows for block in row}
    return [(name, colour) for name, colour in PASSES.items() if name in used]


def draw(output, rows, scale, time_us, keys):
    out = []
    for row, (title, bars) in enumerate(rows):
        y = row * ROW + 4
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(title)}</text>')
        for item in bars:
            width = max(item["dur"] * scale, 0.3)
            name, label = html.escape(item["name"]), item["label"]
            out.append(f'<rect x="{LEFT + item["ts"] * scale:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 6}" '
                       f'fill="{item["colour"]}" fill-opacity="{max(item["opacity"], 0.15):.2f}" stroke="white" '
                       f'stroke-width="0.4"><title>{name}</title></rect>')
            if width > 7 * len(label):
                out.append(f'<text x="{LEFT + item["ts"] * scale + 3:.2f}" y="{y + 14}" fill="white">'
                           f"{html.escape(label)}</text>")
    height = len(rows) * ROW + 22
    out.append(f'<text x="{LEFT}" y="{height - 5}">0</text><text x="{LEFT + WIDTH}" y="{height - 5}" '
               f'text-anchor="end">{time_us / 1000:.2f} ms</text>')
    for i, (name, colour) in enumerate(keys):
        x = LEFT + 60 + 130 * i
        out.append(f'<rect x="{x}" y="{height - 14}" width="10" height="10" fill="{colour}"/>'
                   f'<text x="{x + 15}" y="{height - 5}">{name}</text>')
    output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 10} {height}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()
