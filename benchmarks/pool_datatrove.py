"""Make a pool with datatrove, as close to ours as its blocks allow; bench_pool.py runs this.

    PYTHON benchmarks/pool_datatrove.py RAW.txt OUT

Each sentence becomes a document. It passes the formatter for personal data, filters with conditions
like ours, and a set of digests that drops duplicates; the rest is written as JSON lines.
"""

import hashlib
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import LambdaFilter, RegexFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.writers import JsonlWriter

SENTENCE = re.compile(r".*?[。！？]+[”’」』）】》〉\"]*|.+")
HAN = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf]")
KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
LETTER = re.compile(r"\w")


def main() -> None:
    """Run the pipeline, and print its CPU seconds last."""
    raw, out = sys.argv[1:]
    seen: set[bytes] = set()

    def documents(*_: object) -> Iterator[Document]:
        with Path(raw).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                for text in SENTENCE.findall(line.strip()):
                    yield Document(text=text, id=str(number))

    def is_new(document: Document) -> bool:
        digest = hashlib.blake2b(document.text.encode(), digest_size=8).digest()
        known = digest in seen
        seen.add(digest)
        return not known

    def varied(document: Document) -> bool:
        head = document.text[:60]
        return len(head) < 12 or len(set(head)) >= 0.3 * len(head)

    pipeline = [
        documents,
        PIIFormatter(),
        LambdaFilter(lambda d: 2 * len(HAN.findall(d.text)) >= len(LETTER.findall(d.text))),
        LambdaFilter(lambda d: len(KANA.findall(d.text)) <= 0.1 * len(d.text)),
        LambdaFilter(varied),
        RegexFilter("锟斤拷|锘挎|烫烫|屯屯屯"),
        RegexFilter("版权所有|ICP备|公网安备|转载请注明|责任编辑"),
        LambdaFilter(is_new),
        JsonlWriter(out, compression=None),
    ]
    started = time.process_time()
    LocalPipelineExecutor(pipeline, tasks=1, logging_dir=f"{out}/log").run()
    print(time.process_time() - started)


if __name__ == "__main__":
    main()
