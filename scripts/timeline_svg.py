#!/usr/bin/env python3
"""Draws some tracks of a timeline as an SVG, for documents.

  scripts/timeline_svg.py TIMELINE.json -o OUT.svg "rank 0" links
"""
import argparse
import html
import json
import pathlib

COLOURS = {"compute": "#4c78a8", "delay": "#9ecae9", "wait": "#d8d8d8", "load": "#72b7b2"}
COMMUNICATION = "#f58518"
LEFT, WIDTH, ROW = 110, 990, 26


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument("process", nargs="+", help="beginnings of process names, in order of drawing")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()

    trace = json.loads(options.timeline.read_text())
    processes, threads, slices = {}, {}, {}
    for event in trace["traceEvents"]:
        if event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"]
        elif event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    tracks = [track for wanted in options.process for track in threads
              if processes[track[0]].startswith(wanted) and track in slices]
    scale = WIDTH / trace["otherData"]["time_us"]

    out = []
    for row, track in enumerate(tracks):
        y = row * ROW + 4
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(threads[track])}</text>')
        for event in slices[track]:
            width = max(event["dur"] * scale, 0.3)
            colour = COLOURS.get(event["cat"], COMMUNICATION)
            opacity = event.get("args", {}).get("share", 1)
            name = html.escape(event["name"])
            out.append(f'<rect x="{LEFT + event["ts"] * scale:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 6}" '
                       f'fill="{colour}" fill-opacity="{max(opacity, 0.15):.2f}" stroke="white" stroke-width="0.4">'
                       f"<title>{name}</title></rect>")
            if width > 7 * len(event["name"]):
                out.append(f'<text x="{LEFT + event["ts"] * scale + 3:.2f}" y="{y + 14}" fill="white">{name}</text>')
    height = len(tracks) * ROW + 22
    out.append(f'<text x="{LEFT}" y="{height - 5}">0</text><text x="{LEFT + WIDTH}" y="{height - 5}" '
               f'text-anchor="end">{trace["otherData"]["time_us"] / 1000:.2f} ms</text>')
    options.output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 10} {height}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()
