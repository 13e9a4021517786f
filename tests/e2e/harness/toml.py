"""Python values as TOML: configurations without string templates."""
import json


def _value(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (list, tuple)):
        return "[%s]" % ", ".join(map(_value, v))
    return str(v) if isinstance(v, (int, float)) else json.dumps(str(v))


def _is_table_array(v):
    return isinstance(v, list) and bool(v) and all(isinstance(x, dict) for x in v)


def _table(table, path, out):
    for key, v in table.items():
        if not isinstance(v, dict) and not _is_table_array(v):
            out.append("%s = %s" % (key, _value(v)))
    for key, v in table.items():
        name = ".".join((*path, key))
        if isinstance(v, dict):
            out.append("\n[%s]" % name)
            _table(v, (*path, key), out)
        elif _is_table_array(v):
            for item in v:
                out.append("\n[[%s]]" % name)
                _table(item, (*path, key), out)


def dumps(table):
    out = []
    _table(table, (), out)
    return "\n".join(out) + "\n"


def merge(base, extra):
    """Merges extra over base, table by table."""
    merged = dict(base)
    for key, v in extra.items():
        merged[key] = merge(merged[key], v) if isinstance(v, dict) and isinstance(merged.get(key), dict) else v
    return merged
