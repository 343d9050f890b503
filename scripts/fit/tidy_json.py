"""JSON as the files in configs/ are laid out: what fits on a line stays on one."""
import json

WIDTH = 116


def tidy(value, indent=0, width=WIDTH):
    """The text of `value`, without a final newline."""
    flat = flat_text(value)
    if not isinstance(value, (dict, list)) or not value or len(flat) + indent <= width and indent > 0:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(k, ensure_ascii=False)}: {tidy(v, indent + 2, width)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    lines = [pad + tidy(v, indent + 2, width) for v in value]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def flat_text(value):
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {flat_text(v)}" for k, v in value.items())
        return "{ " + inside + " }" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(flat_text(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)
