"""Placeholders for personal data: precision and recall by type on the labelled sentences."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from privacy_set import PRECISION, RECALL, REPORTED, rates, sentences, spans

from cecdata.corpus.ids import make_id_column
from cecdata.corpus.normalise import normalise
from cecdata.corpus.privacy import mask_column, mask_text
from cecdata.shards.schema import ROW


def test_every_type_reaches_its_goal():
    """On other values than those of the benchmark; names and addresses are only reported."""
    assert sum(1 for _ in sentences()) >= 600
    for kind, (count, precision, recall) in rates(seed=12).items():
        assert count >= 40
        assert kind in REPORTED or (precision >= PRECISION and recall >= RECALL), kind


def test_a_column_is_masked_as_its_texts():
    """Every text that a rule matches has the rule's trace, whatever stands beside it."""
    texts = [text for text, _ in sentences()]
    draw = random.Random(5)
    halves = [text[: draw.randrange(len(text))] for text in texts]
    others = draw.sample(texts, len(texts))
    texts += [half + other for half, other in zip(halves, others, strict=True)]
    masked = mask_column(pa.array(texts)).to_pylist()
    assert masked == [mask_text(text) for text in texts]


def test_what_is_masked_is_named_with_its_value():
    """The measure itself: type and value of every placeholder."""
    assert spans("我叫张伟，QQ是12345678。") == {("NAME", "张伟"), ("QQ", "12345678")}


def test_look_alikes_stay():
    """Times, years, lengths, versions, places in a document, and common words are no such data."""
    for text in (
        "时间12:30:45到12:31:00", "微信支付300元", "比例3:2:1", "周末对小姐姐说",
        "版本10.0.1.25已发布", "订单号13812345678", "京A级景区有12家", "用QQ登录3次",
        "见第4.4.3.2节", "章节2.2.2.8", "标准4.4.3.3小节", "更新内容7.0.1.4", "更新到 7.0.1.4",
        "从1985-1990 100人", "1998 2003 123", "400 500 600 米", "跑800 1500 3000米",
        "1500 8000 300米", "微信Windows10版", "微信iPhone15用户", "收件人于次日，", "姓名任意，",
        "证号110105194912310021", "证号110105194913310021", "卡号4111 1111 1111 1112",
        "版本1.13812345678", "他走了5号线到人民广场", "到南京路12号线换乘", "任何先生都行",
        "我叫高兴得跳起来。", "圆周率3.14159265358979", "联系人常年，",
        "转速150,1500,1800转", "感谢张伟@李四。中国队", "转发@abc。OK",
        "页面a#b.c", "比分3:2:1:0", "约13800000000年", "1.2.3.4版", "GB 11643-1999",
    ):  # fmt: skip
        assert mask_text(text) == text
    assert mask_text("这是由于许先生，对于李女士") == "这是由于<NAME>先生，对于<NAME>女士"


# Written for this test; every number is invented. Other widths, styles, separators and labels, and
# invisible characters and marks in between.
FORMS = {
    "PHONE": (
        "\U0001d7cf\U0001d7d1\U0001d7d7\U0001d7cf\U0001d7d0\U0001d7d1\U0001d7d2\U0001d7d3\U0001d7d4\U0001d7d5\U0001d7d6",
        "1\ufe0f3\ufe0f9\ufe0f1\ufe0f2\ufe0f3\ufe0f4\ufe0f5\ufe0f6\ufe0f7\ufe0f8\ufe0f",
        "1\u03363\u03369\u03361\u03362\u03363\u03364\u03365\u03366\u03367\u03368\u0336",
        "\u6253139\u200b1234\u200b5678\u7ed9\u6211", "\u62531391234\xad5678\u7ed9\u6211",
        "139\U000e01001234\U000e00205678", "手机13912345678、13987654321", "一三九一二三四五六七八",
        "电话１３９１２３４５６７８", "139\U000114512345\u0600678", "１３９—１２３４—５６７８",
        "一三九 一二三四 五六七八", "壹叁玖-壹贰叁肆-伍陆柒捌", "139\u28001234\u28005678",
        "139\u30001234\u30005678", "幺三九幺二三四五六七八", "壹叁玖壹贰叁肆伍陆柒捌",
        "1 3 9 1 2 3 4 5 6 7 8", "1-3-9-1-2-3-4-5-6-7-8", "（+86）139 1234 5678", "+86 13912345678",
        "１３９ 1234 五六七八", "手機：0912-345-678", "+86-139-1234-5678", "手机——13912345678",
        "（86-10）62345678", "+1 (415) 555-0132", "139 - 1234 - 5678", "139 | 1234 | 5678",
        "+86.139.1234.5678", "（139）1234-5678", "0086-13912345678", "(+86)13912345678",
        "（010）6234-5678", "+86 10 6234 5678", "008613912345678", "tel:13912345678", "①③⑨①②③④⑤⑥⑦⑧",
        "Tel.13912345678", "电话01062345678", "+44 7911 123456", "139 12 34 56 78", "139-1234-5678",
        "86-13912345678", "+8613912345678", "TEL13912345678", "86-10-62345678", "电话：62345678",
        "客服4008208820", "+852 9123 4567", "座机 6234 5678", "139 1234 5678", "139.1234.5678",
        "139/1234/5678", "139·1234·5678", "139_1234_5678", "139—1234—5678", "139–1234‑5678",
        "139 123 45678", "1391-2345-678", "(139)12345678", "(010)62345678", "010 6234 5678",
        "0755-82345678", "139~1234~5678", "139*1234*5678", "139−1234−5678", "139 1998 2003",
        "139,1234,5678", "139…1234…5678", "139'1234'5678", "VX13912345678", "010.6234.5678",
        "13912 345678", "1391234-5678", "010-62345678", "010—62345678", "400-820-8820",
        "400 820 8820", "4001-234-567", "☎13912345678", "013912345678", "010/62345678",
        "400.820.8820",
    ),
    "EMAIL": (
        "zhang.wei＠mail.com", "ｚｈａｎｇ＠ｑｑ．ｃｏｍ", "zhangwei @ qq.com",
        "zhangwei(at)qq.com", "zhangwei[at]qq[dot]com", "zhangwei（at）qq.com",
        "zhangwei at qq dot com", "zhangwei@qq。com", "zhangwei@qq .com", "zhang\u200bwei@qq.com",
        "请回zhang-wei_88@vip.163.com", "a+b@例子.中国", "mailto:zhangwei@example.org",
        "zhangwei@@qq.com", "zhangwei@qq点com", "zhangwei艾特qq点com", "zhangwei<at>qq<dot>com",
        "zhang'wei@qq.com", "ZHANG@QQ.COM", "zhangwei AT qq DOT com", "zhangwei【at】qq.com",
        "zhangwei\u200d@qq\u2060.com", "<zhangwei@qq.com>", "张伟@例子.中国",
        "邮箱：张伟@example.com", "zhangwei@mail.例子.中国", "zhаngwei@qq.сom",
        "zhangwei@münchen.de", "?email=zhangwei%40qq.com", "zhang~wei@qq.com",
    ),
    "ID": (
        "１１０１０５１９４９１２３１００２Ｘ", "1 1 0 1 0 5 1 9 4 9 1 2 3 1 0 0 2 X",
        "一一零一零五一九四九一二三一零零二X", "壹壹〇壹〇伍壹玖肆玖壹贰叁壹〇〇贰X",
        "110105\u200b19491231\u200b002X", "公民身份号码11010519491231002X", "110105 19491231 002X",
        "11 01 05 19 49 12 31 00 2X", "证件号：11010519491231002X", "身份证号：110105491231002",
        "1101 0519 4912 3100 2X", "110105，19491231，002X", "110105-19491231-002X",
        "110105·19491231·002X", "110105−19491231−002X", "110105_19491231_002X",
        "110105,19491231,002X", "(110105)19491231002X", "110105194912310 02x", "11010519491231002X",
        "11010519491231002Ⅹ", "11010519491231002×", "11010519491231002Χ", "11010519491231002Х",
        "身份证号：110105,491231,002", "身份证号一一零一零五四九一二三一零零二",
    ),
    "ADDR": (
        "地址:上海市浦东新区世纪大道100号环球大厦20楼2001室", '"address":"北京市朝阳区建国路88号"',
        "\u4f4f\u5728\u4e2d\u5c71\u200b\u8def12\u53f7", "地址：北京市朝阳区建国路88号2号楼3单元502",
        "住在阳光花园12号楼3单元1502室", "住在中山路１２号３栋５０２室", "在解放路１０１－１０３号",
        "北京市朝阳区建国路88号，电话", "地址=北京市朝阳区建国路88号", "送到中山路12号东华饭店1楼",
        "地址：朝阳门外大街乙12号", "住在幸福小区3栋2单元502", "住在阳光小区2号楼3门501",
        "住址是人民路25号院3号楼", "住在中山路12弄3号502室", "住在中山路12号（后门）",
        "住在长江路100弄5号601", "住在中山路一百二十号", "地址：新华路一二三号", "住在中山路 12 号",
        "在建国门外大街甲6号", "在人民南路四段27号", "住在中山路12号之3", "住中山路12号3#502",
        "家住东风村3组15号", "居住在长安街 1 号", "住在中山路12-3号", "到文一西路969号",
        "住在中山路12号", "家住李家村12组", "在复兴路甲１号", "住在中山路12#",
    ),
    "CARD": (
        "4111\u200b1111\u200b1111\u200b1111", "４１１１１１１１１１１１１１１１",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "6222 0212 3456 7890 128", "4111  1111  1111  1111",
        "4111111111111111元旦", "4111 1111 1111 1111", "4111-1111-1111-1111", "4111.1111.1111.1111",
        "4111—1111—1111—1111", "4111_1111_1111_1111", "4111·1111·1111·1111", "4111/1111/1111/1111",
        "4111−1111−1111−1111", "41111111 11111111", "3782 822463 10005", "④①①①①①①①①①①①①①①①",
    ),
    "QQ": (
        "QQ：１２３４５６７８", "ＱＱ：12345678", "Q Q：12345678", "QQ号是12345678", "QQ 1234 5678",
        "扣扣12345678", "企鹅号：12345678", "加Q12345678", "QQ 号 12345678", "QQ—12345678",
        "QQ帐号12345678", "QQ账号：12345678", "球球12345678", "扣群12345678", "QQ=12345678",
        "QQ号为：12345678", "QQ:①②③④⑤⑥⑦⑧", "Q\u200bQ12345678", '"qq":"12345678"',
        "QQ号【12345678】", "QQ号“12345678”", "Q群12345678", "秋秋12345678", "加扣12345678",
    ),
    "WECHAT": (
        "微信：zhang_wei88", "微信号 zhang_wei88", "VX：zhangwei88", "ＶＸ：zhangwei88",
        "V信zhangwei88", "薇信:zhangwei88", "微 信：zhangwei88", "wx=zhangwei88",
        "微信ID：ｚｈａｎｇｗｅｉ８８", "weixin:zhangwei88", "加微zhangwei88", "徽信zhangwei88",
        "微信—zhangwei88", "微信→zhangwei88", "微信号为：zhangwei88", "VX号：zhangwei88",
        "WeiXin zhangwei88", "wechat id zhangwei88", "V\u200bX：zhangwei88", "微信【zhangwei88】",
        '"wechat":"zhangwei88"', "微信号是“zhangwei88”",
    ),
    "NAME": (
        "联系人：张伟", "请联系张三，电话13912345678", "找李女士", "我叫欧阳明", "姓名 张伟",
        "徐伟先生，徐先生看了名片", "张伟先生说好。张伟又说不", "姓 名：张伟", "联 系 人：张伟",
        "姓名：张 伟，", "我的名字叫张伟", "我的名字是张伟", "寄件人：张伟", "申请人：张伟",
        "法定代表人：张伟", "张\u200b伟先生", "收货人为：张伟", "姓名=张伟", "姓名【张伟】",
        "姓名 | 张伟", "户名：张伟", "经办人：张伟", '"姓名": "张伟"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMS)
def test_every_printed_form_is_masked(kind):
    """Of each form no digit, letter or character of the value is left."""
    for form in FORMS[kind]:
        masked = mask_text(form)
        assert f"<{kind}>" in masked, form
        left = re.sub("<[A-Z]+>", "", masked)
        assert not re.search("[0-9]{2}|[张伟徐]|zhang", left), (form, masked)
        assert mask_column(pa.array([form])).to_pylist() == [masked]
        assert mask_text(masked) == masked


def test_a_text_is_masked_in_its_normal_form():
    """A number that the normaliser would put together is masked before it is a sentence."""
    texts = ["号码一，打139\u200b1234\u200b5678给我，谢谢您。"]
    texts += ["请打我电话１３９１２３４５６７８联系。"]
    columns = [pa.array(texts), pa.array(["网"] * 2), pa.array(["a.txt"] * 2), pa.array([1, 2])]
    batch = pa.RecordBatch.from_arrays([*columns, pa.nulls(2, pa.string())], schema=ROW)
    clean = normalise(batch, 5, 512, mask_column)
    assert clean.batch.column("text").to_pylist() == [
        "号码一，打<PHONE>给我，谢谢您。",
        "请打我电话<PHONE>联系。",
    ]
    short = normalise(batch, 100, 512, mask_column)
    assert "".join(short.rejected.column("text").to_pylist()).count("<PHONE>") == 2


def test_a_name_is_masked_wherever_it_occurs():
    """A name that was found is not left elsewhere in the text."""
    assert mask_text("昨天徐伟先生来了，徐伟说，王先生见到徐先生了。") == (
        "昨天<NAME>先生来了，<NAME>说，<NAME>先生见到<NAME>先生了。"
    )


# The changed sentences of the sample, by the first digits of their ids. Each was read: it has a
# name before a title, an address of a house, a telephone number, or an account.
READ = """
291e -4ff -585 -457 3e1d 4760 3be8 -0c1 -4a6 6e6c -2ff -52f -e9b 521d -39a 2f9e 1d59 -8ae 7cd3
60fb -1f3 -28b -1ee -3e3 10c2 -66c 487b 34eb 66ff -1e2 -10b -28d -34a 4ab3 130d 4d38 -33c -707
2378 -16a 5388 66ab -280 -195 7d38
"""


def test_clean_sentences_are_left(cec_shared):
    """At most 0.05 % of 20,000 clean sentences have a false hit; one that nobody read is false."""
    table = pq.read_table(cec_shared / "clean/clean.parquet", columns=["text"])
    text = table.column("text").combine_chunks().cast(pa.string())
    sample = text.take(pa.array(random.Random(11).sample(range(len(text)), 20_000)))
    changed = sample.filter(pc.not_equal(sample, mask_column(sample)))
    unread = {f"{key:016x}"[:4] for key in make_id_column(changed).to_pylist()} - set(READ.split())
    assert len(unread) <= 10, unread
    assert len(changed) <= 60
