"""`croissant.json`: the dataset in MLCommons Croissant 1.0 with RAI fields, from the manifest.

Specifications: https://docs.mlcommons.org/croissant/docs/croissant-spec.html and
https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.shards.card import Texts, splits_with_rows
from cecdata.shards.manifest import File, Manifest
from cecdata.shards.schema import PAIR, POOLED

CROISSANT = "croissant.json"

_CONTEXT: dict[str, Json] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_PERSONAL = (
    "Names and other personal data of the sources are in the sentences, unless the corpus was "
    "masked (`--mask`)."
)


def croissant(manifest: Manifest, texts: Texts) -> bytes:
    """Return the bytes of `croissant.json`: a file object per shard, a record set per split."""
    about = texts.about or "Pairs for Chinese spelling correction."
    use = {**_use(manifest, texts.about), **_use_of_pairs(manifest)}
    facts: dict[str, Json] = {"name": texts.title, "description": about, "license": texts.licence}
    return _document(manifest, {**facts, **use}, PAIR, ("id", "copy"))


def pool_croissant(manifest: Manifest) -> bytes:
    """Return the bytes of `croissant.json` of a pool, with the licences that its rows state."""
    origins = manifest.extra["origins"]
    assert isinstance(origins, list)
    stated = {str(one["licence"] or "not stated") for one in origins if isinstance(one, Mapping)}
    licences: list[Json] = [*sorted(stated)]
    facts: dict[str, Json] = {
        "name": "Chinese sentences",
        "description": f"{manifest.rows.kept:,} distinct sentences in normal form.",
        "license": licences if len(licences) > 1 else licences[0],
        **_use(manifest, ""),
        "rai:dataUseCases": ["Clean text from which pairs for spelling correction are made."],
        "rai:dataLimitations": ["What the sources got wrong is in the sentences."],
    }
    return _document(manifest, facts, POOLED, ("id",))


def _document(
    manifest: Manifest, facts: Mapping[str, Json], schema: pa.Schema, key: Sequence[str]
) -> bytes:
    """Return the bytes of the file; `key` names the columns that identify a row."""
    splits = splits_with_rows(manifest)
    document: dict[str, Json] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.0",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        **facts,
        "inLanguage": "zh",
        "version": manifest.version,
        "citeAs": "CEC-Zero, arXiv:2512.23971",
        "distribution": [
            node
            for split, records in splits.items()
            for node in (*map(_file_object, records), _file_set(split, records[0].path))
        ],
        "recordSet": [_record_set(split, schema, key) for split in splits],
    }
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def _use(manifest: Manifest, about: str) -> dict[str, Json]:
    """Return the RAI fields of pairs and pools: how the sentences were collected."""
    rows, pairs = manifest.rows, manifest.pairs
    reasons = ", ".join(dict.fromkeys((*rows.rejected, *pairs.rejected))) or "none"
    return {
        "rai:dataCollection": (
            f"{rows.kept:,} sentences of {rows.read:,} rows of clean text. {about}"
        ).strip(),
        "rai:dataCollectionType": ["Others"],
        "rai:dataPreprocessingProtocol": [
            "Sentences are brought to a normal form, and repeated ones are left out.",
            f"Rejected, with the reason of each in the files of rejects/: {reasons}.",
        ],
        "rai:dataBiases": ["The sentences carry whatever bias their sources have."],
        "rai:personalSensitiveInformation": [_PERSONAL],
        "rai:dataReleaseMaintenancePlan": (
            "None. The manifest has the configuration and the digests with which it can be made "
            "again."
        ),
    }


def _use_of_pairs(manifest: Manifest) -> dict[str, Json]:
    """Return the further RAI fields of pairs: how the errors were made, uses and limitations."""
    return {
        "rai:dataAnnotationProtocol": "Nobody annotated: the operators "
        f"({', '.join(manifest.operators)}) write errors into clean sentences, which are the "
        "references.",
        "rai:machineAnnotationTools": [f"{manifest.product} {manifest.version}"],
        "rai:dataUseCases": ["Training and evaluation of Chinese spelling correction."],
        "rai:dataLimitations": [
            "The errors are made by rules: a score on them says little of errors that people make.",
            "A replaced character can by chance give another correct sentence.",
        ],
        "rai:dataSocialImpact": "A corrector that is trained on them may change a right name.",
    }


def _file_object(record: File) -> Json:
    return {
        "@type": "cr:FileObject",
        "@id": record.path,
        "name": record.path.rsplit("/", 1)[-1],
        "contentUrl": record.path,
        "contentSize": f"{record.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": record.sha256,
    }


def _file_set(split: str, first: str) -> Json:
    # Without `containedIn` the pattern is relative to the folder of this file.
    return {
        "@type": "cr:FileSet",
        "@id": f"{split}-files",
        "name": f"{split}-files",
        "encodingFormat": "application/x-parquet",
        "includes": f"{first.partition('-')[0]}-*.parquet",
    }


def _record_set(split: str, schema: pa.Schema, key: Sequence[str]) -> Json:
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"The rows of the split {split}.",
        "key": [{"@id": f"{split}/{name}"} for name in key],
        "field": [_field(field, split) for field in schema],
    }


def _field(field: pa.Field, split: str) -> Json:
    name = f"{split}/{field.name}"
    node: dict[str, Json] = {"@type": "cr:Field", "@id": name, "name": name}
    source: dict[str, Json] = {
        "fileSet": {"@id": f"{split}-files"},
        "extract": {"column": field.name},
    }
    if not pa.types.is_list(field.type):
        return {**node, "dataType": _data_type(field.type), "source": source}
    parts: list[Json] = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{part.name}",
            "name": f"{name}/{part.name}",
            "dataType": _data_type(part.type),
            "source": {**source, "transform": {"jsonPath": part.name}},
        }
        for part in field.type.value_type
    ]
    return {**node, "repeated": True, "source": source, "subField": parts}


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
