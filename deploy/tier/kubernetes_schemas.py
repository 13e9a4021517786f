"""JSON Schemas for kubeconform from Kubernetes' own description: kubernetes_schemas.py SWAGGER.json FOLDER

Every object that lists its properties is closed, so a misspelt field is an error."""
import json
import pathlib
import sys

LOOSE = {"util.intstr.IntOrString": ["string", "integer"], "api.resource.Quantity": ["string", "number"]}


def strict(node):
    if isinstance(node, list):
        return [strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": "_definitions.json#/definitions/" + node["$ref"].rsplit("/", 1)[1]}
    out = {key: strict(value) for key, value in node.items()}
    if isinstance(out.get("properties"), dict):
        out.setdefault("additionalProperties", False)
    return out


def file_name(kind):
    group = kind["group"].split(".")[0]
    return "-".join(part for part in (kind["kind"], group, kind["version"]) if part).lower() + ".json"


def main(swagger, folder):
    definitions = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    closed = {name: strict(body) for name, body in definitions.items()}
    for name in closed:
        for ending, types in LOOSE.items():
            if name.endswith(ending):
                closed[name] = {"type": types}
    for name, body in definitions.items():
        for kind in body.get("x-kubernetes-group-version-kind", [])[:1]:
            (folder / file_name(kind)).write_text(json.dumps({"$ref": "_definitions.json#/definitions/" + name}))
    (folder / "_definitions.json").write_text(json.dumps({"definitions": closed}))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
