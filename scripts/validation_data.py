#!/usr/bin/env python3
"""Makes validation/*.json from the shared measurements; run by hand when those change.

  scripts/validation_data.py [../shared/measurements/data]

Every record and row is kept, numbers as they are. Free text is not carried over: systems are told in a
fixed set of words, which `flyover validate` reads alike, and notes become tags. Records that are not among them
(gb200-nvl72-allreduce-72gpu-cw, written by hand) stay.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELDS = ("bytes", "time_us", "algbw_GBps", "busbw_GBps")
GPU = re.compile(r"\b(?:GB[23]00|B[23]00|H[128]00|H20|A100|MI3\d\dX)\b")

# Words of the fabric: what to look for, what to write. All that are found are kept, in this order.
FABRIC = [
    (r"P2P off", "P2P off"), (r"NVLink bridge", "NVLink bridge"), (r"MetaXLink", "MetaXLink"),
    (r"two NVLink domains", "two NVLink domains"), (r"2x NVL72", "2x NVL72"),
    (r"(?<!2x )NVL72", "NVL72"), (r"MNNVL off", "MNNVL off"), (r"MNNVL(?! off)", "MNNVL"),
    (r"NVSwitch|NVLink through|NVLink5 through|^NVLink$", "NVSwitch"), (r"tray", "one tray"),
    (r"xGMI full mesh", "xGMI mesh"), (r"xGMI(?! full)", "xGMI"), (r"Infinity Fabric", "xGMI"),
    (r"InfiniBand NDR", "InfiniBand NDR"), (r"InfiniBand HDR", "InfiniBand HDR"),
    (r"InfiniBand EDR", "InfiniBand EDR"), (r"InfiniBand(?! [NHE]DR)", "InfiniBand"),
    (r"RoCE", "RoCE"), (r"EFA", "EFA"), (r"Slingshot", "Slingshot-11"), (r"TCPXO", "TCPXO"),
]
# Tags of the notes, likewise.
NOTES = [
    (r"-g 8|\bg [48]\b|[Oo]ne process(?! per)|single[- ]process|8 GPUs in one process|threads in one", "one process drives all GPUs"),
    (r"CUDA graph", "CUDA graph"), (r"PEAK ONLY", "only a peak"), (r"READ BY EYE", "read from a plot"),
    (r"IN-PLACE busbw", "in place"), (r"[Bb]usbw only|busbw only", "only bus bandwidth"),
    (r"truncates sizes", "large sizes only"), (r"excerpt", "part of the table"),
    (r"outlier", "has outliers"), (r"[Dd]egraded|slow|collapse", "slow in part"),
    (r"custom LSA|[Cc]ustom .*kernel|custom algorithm", "custom kernel"),
    (r"GPU (not printed|model UNSURE)|GPU type", "GPU inferred"),
]


def words(table, text):
    return ", ".join(dict.fromkeys(word for pattern, word in table if re.search(pattern, text or "")))


def gpu_name(text):
    """ "H100 or B200 (UNSURE which)" as "H100 or B200"; a name with its unsure explanation cut off."""
    outside = re.sub(r"\s*\(.*\)", "", text)
    if outside.startswith("MetaX") or re.match(r"(GB|B|H|A|V|MI)\d+\S*( VF)?$", outside):
        return outside
    several = list(dict.fromkeys(GPU.findall(re.sub(r"/", " ", text))))
    return " or ".join(several) or None


def stated(text):
    """A short fact without the remarks behind it; None when there is none."""
    text = re.sub(r"\s*\((?:UNSURE|assumed|pip|version|all_reduce).*?\)|[,;]? *~.*|;.*| default in.*", "", text or "")
    return None if not text or re.match("not stated|validation", text) else text


def convert(record):
    system = record["system"]
    software = {k: stated(v) for k, v in record.get("software", {}).items() if stated(v)}
    out = {
        "id": record["id"], "source": record["source"], "site": record["site"], "date": record["date"],
        "system": {
            "gpu": gpu_name(system["gpu"]), "gpus_per_node": system["gpus_per_node"], "nodes": system["nodes"],
            "nvlink_gen": system["nvlink_gen"],
            "nic": stated(re.sub(r"\s*\([^)]*\)?", "", system["nic"] or "")),
            "nic_gbps_per_gpu": system["nic_gbps_per_gpu"], "fabric": words(FABRIC, system["fabric"]) or None,
        },
        "n_gpus": record["n_gpus"], "software": software, "collective": record["collective"],
        "dtype": stated(record["dtype"]), "health": record["health"], "notes": words(NOTES, record.get("notes")),
    }
    if "algbw_directions" in record:
        out["algbw_directions"] = record["algbw_directions"]
    for table in ("rows", "in_place"):
        if table in record:
            out[table] = [{k: row[k] for k in FIELDS if k in row} for row in record[table]]
    return out


def lines(record):
    """JSON with one row of a table per line."""
    text = json.dumps(record, indent=1, ensure_ascii=True)
    compact = lambda m: "{ " + re.sub(r"\s*\n\s*", " ", m.group(1).strip()) + " }"
    return re.sub(r"\{((?:\s*\"(?:%s)\": [^,{}\n]+,?)+\s*)\}" % "|".join(FIELDS), compact, text) + "\n"


def main():
    default = ROOT.parent / "shared" / "measurements" / "data"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target = ROOT / "validation"
    paths = sorted(folder.glob("*.json"))
    if not paths:
        sys.exit(f"{folder} has no records")
    for path in paths:
        record = convert(json.loads(path.read_text(encoding="utf-8")))
        (target / f"{record['id']}.json").write_text(lines(record), encoding="utf-8")
    print(f"{len(paths)} records in {target}")


if __name__ == "__main__":
    main()
