"""Boilerplate of web pages: menus, copyright notices, calls to share or to read on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality

if TYPE_CHECKING:
    import polars as pl

LONGEST = 60  # a longer sentence has other content, too
_PHRASES = (
    "版权所有", "(?i)all rights reserved", "(?i)copyright", "ICP备", "公网安备",
    "未经.{0,6}(?:许可|授权)", "转载请注明", "责任编辑",
    "(?:点击|扫码|长按).{0,8}(?:查看|阅读|展开|关注|下载|二维码)", "关注.{0,4}公众号",
    "^(?:上一篇|下一篇|返回顶部|返回首页|展开全文|阅读原文|查看更多)", "^(?:首页|登录|注册)[ >|·]",
)  # fmt: skip


def _fails(text: pl.Expr) -> pl.Expr:
    return (text.str.len_chars() <= LONGEST) & text.str.contains("|".join(_PHRASES))


QUALITY = Quality(_fails, "it is boilerplate of a page")
