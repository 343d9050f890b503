#!/usr/bin/env python3
"""Makes validation/training/*.json from the shared training results; run by hand when those change.

  scripts/training_data.py [../shared/training/results.json]

Every record is kept, in the same format, its numbers and words as they are. Left out are free text (notes become words
of a fixed set), measurements of other things than a step (per_layer), and what follows from other members
(model_tflops_..., tags). One file per family of sources, so that a change in one shows as a change of one file.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# First match of the record's source_key names the file.
FILES = [
    (r"mosaicml", "mosaicml"), (r"bigscience", "bigscience"), (r"dgxc", "dgxc"), (r"mbridge", "megatron-bridge"),
    (r"mlperf", "mlperf"), (r"internevo", "internevo"), (r"titan|aws-torchtitan", "torchtitan"), (r"nemo", "nemo"),
    (r"tpu|maxtext", "tpu"), (r"moe", "moe"), (r"megatron|sc21|korthikanti", "megatron"), (r"", "others"),
]

# Words of the notes: what to look for, what to write. All that are found are kept, in this order.
NOTES = [
    (r"force-balanced|forced balance", "balanced routing"), (r"real routing", "real routing"), (r"dropless", "dropless"),
    (r"token-drop", "token drop"), (r"no MTP layer", "no MTP"), (r"Muon", "Muon"), (r"ALiBi", "ALiBi"),
    (r"FlashAttention", "FlashAttention"), (r"packed|pack_sample", "packed sequences"), (r"LoRA rank 16", "LoRA rank 16"),
    (r"proxy model", "proxy model"), (r"sliding window", "sliding window"), (r"1F1B A2A overlap", "1F1B A2A overlap"),
    (r"activation offloading", "activation offloading"), (r"no data parallelism", "no data parallelism"),
    (r"layout not matched|layout incomplete|[Ll]ayout .*not (?:stated|available)", "layout not known"),
    (r"precision (?:not in table|ambiguous|presumed)|precision ambiguous|both FP8 and FP4", "precision not certain"),
    (r"alternative FP8", "alternative FP8 recipe"), (r"not well tuned", "not tuned"),
    (r"regression", "known regression"), (r"MBS(?: and VP)? not stated|microbatch size", "micro-batch not stated"),
    (r"inconsistent with GPU count", "data parallelism from the GPUs"), (r"log-log chart", "read from a chart"),
    (r"[Ss]equence length 1024 (?:assumed|per)", "sequence assumed"), (r"GPU count (?:\d+ )?(?:assumed|recalled)", "GPUs not certain"),
    (r"DGX-2 V100", "DGX-2"), (r"DGX-A100", "DGX A100"), (r"README says PP=41", "PP corrected"),
]
DATE = re.compile(r"note date (\d\d-\d\d)")
MEASURED_ELSEWHERE = ("per_layer", "comm_stream_busy_s", "compute_stream_busy_s", "gpu_span_s")
SOURCE = ("title", "repo", "commit", "url", "arxiv", "path", "section", "line", "release", "config")


def words(text):
    found = [word for pattern, word in NOTES if re.search(pattern, text or "")]
    return ", ".join(dict.fromkeys(found + DATE.findall(text or "")))


def stated(members):
    return {key: value for key, value in members.items() if value is not None}


def convert(record):
    hardware = dict(record["hardware"])
    hardware["note"] = "HBM2e, 500 W" if "HBM2e" in (hardware.get("note") or "") else None
    layout = {k: v for k, v in record["layout"].items() if k != "variant"}
    out = {
        "id": record["id"], "group": record["group"], "source_key": record["source_key"], "kind": record["kind"],
        "model": record["model"], "hardware": hardware, "precision": record["precision"], "layout": layout,
        "framework": record["framework"],
        "measured": {k: v for k, v in record["measured"].items() if k not in MEASURED_ELSEWHERE},
        "derived": {k: v for k, v in record["derived"].items() if not k.startswith("model_tflops")},
        "source": {k: record["source"][k] for k in SOURCE if k in record["source"]},
        "evidence": record["evidence"], "notes": words(record["notes"]), "missing": record["missing"],
        "quality": record["quality"],
    }
    for key in ("model", "hardware", "layout", "source"):
        out[key] = stated(out[key])
    return out


def lines(record):
    """JSON with one member of a record per line."""
    members = [f'  {json.dumps(key)}: {json.dumps(value)}' for key, value in record.items()]
    return " {\n" + ",\n".join(members) + "\n }"


def main():
    default = ROOT.parent / "shared" / "training" / "results.json"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    records = json.loads(path.read_text(encoding="utf-8"))
    files = {}
    for record in records:
        name = next(name for pattern, name in FILES if re.search(pattern, record["source_key"]))
        files.setdefault(name, []).append(convert(record))
    target = ROOT / "validation" / "training"
    target.mkdir(exist_ok=True)
    for name, converted in files.items():
        text = "[\n" + ",\n".join(lines(record) for record in converted) + "\n]\n"
        (target / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"{len(records)} records in {len(files)} files of {target}")


if __name__ == "__main__":
    main()
