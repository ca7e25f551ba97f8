# %% [markdown]
# # CEC-Zero in five minutes
#
# Clean Chinese text becomes training pairs, a corrector corrects text, and a scorer scores it.
# All of it runs on a CPU, and nothing is downloaded. Install once, in a clone of the repository:
# `make setup-dev`.

# %% [markdown]
# ## 1. What an error is
#
# `perturb` writes errors into one sentence, as the recipe `typed` weighs them. The same seed
# writes the same errors.

# %%
import cecdata

for pair in cecdata.perturb("他的病情已经好转，明天就可以出院。", recipe="typed", copies=4):
    print(pair["operator"], pair["source"])

# %% [markdown]
# ## 2. Pairs from clean text
#
# Give a data frame, or the names of files; here ten sentences are repeated with other numbers.
# The result is a folder of Parquet files that `datasets.load_dataset` reads, with a manifest and
# a dataset card.

# %%
import polars as pl

sentences = [
    "第{}号车厢的空调已经修好，请旅客放心乘坐。",
    "会议改到{}号下午三点，地点不变。",
    "图书馆{}楼的阅览室周末照常开放。",
    "请在{}天之内把合同寄回公司。",
    "这家饭馆的{}号套餐味道很好，价格也不贵。",
    "他一口气跑完了{}公里，累得说不出话来。",
    "老师布置了{}道练习题，明天上课要检查。",
    "小区门口新开了{}家水果店，生意都很红火。",
    "医生建议他每天散步{}分钟，少吃油腻的食物。",
    "列车晚点{}分钟，乘客们在站台上耐心等候。",
]
frame = pl.DataFrame({"text": [text.format(n) for text in sentences for n in range(2, 32)]})
made = {"recipe": "typed", "filters": ("levenshtein",)}
manifest = cecdata.build(frame=frame, out="out/quickstart", **made)
print(f"{manifest.pairs.kept} pairs of {manifest.rows.kept} sentences")

# %%
pairs = cecdata.scan("out/quickstart").select("operator", "source", "target").collect()
print(pairs.group_by("operator").len().sort("len", descending=True))

# %% [markdown]
# ## 3. Look at them
#
# `report.html` is one page that loads nothing: counts, rates, confusions, and the pairs with
# their edits.

# %%
from pathlib import Path

from cecdata.report import write_report

page = write_report(Path("out/quickstart"))
print(page)

# %% [markdown]
# ## 4. Correct text
#
# The noisy channel turns the recipe round: how probable is it that a writer meant this, and wrote
# that? It has seen no label and needs no training. `Corrector()` without a name also asks the
# shipped policy.

# %%
from cectrain import Corrector

corrector = Corrector()
for correction in corrector.correct(["他的病情己经好转。", "这个问题很难解绝。", "今天天气很好。"]):
    print(correction.source, "→", correction.target)
    for edit in correction.edits:
        print(f"    {edit.source} → {edit.target}  {edit.confidence:.0%}")

# %% [markdown]
# ## 5. Score it
#
# The held-out pairs are a test set with synthetic errors. A score on them says whether everything
# works, and little of errors that people make: `cecbench list` names the published sets.

# %%
import cecbench

held_out = cecdata.scan("out/quickstart", "validation").collect()
sources, targets = held_out["source"].to_list(), held_out["target"].to_list()
predictions = [correction.target for correction in corrector.correct(sources)]
result = cecbench.score(sources, targets, predictions)
print(f"F1 of sentences: {result.headline}")

# %% [markdown]
# ## Next
#
# - `make train` trains the shipped policy on the sample, in some ten minutes on two cores.
# - `docs/howto/corpus.md` reads your own texts, `docs/howto/score.md` scores other systems.
