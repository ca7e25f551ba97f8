"""Sentences with personal data and with what only looks like it, written for this project.

Every value comes from a random generator. Numbers that need a checksum have a valid one; the digits
of look-alikes are random. `sentences()` yields (text, {(type, value)}).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator

from cecdata.corpus.privacy import mask_text

_IDS = "10X98765432"
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _digits(r: random.Random, count: int) -> str:
    return "".join(r.choices("0123456789", k=count))


def mobile(r: random.Random) -> str:
    number = f"1{r.choice('3456789')}{_digits(r, 9)}"
    shapes = ("{0}", "{0}", "{0}", "+86 {0}", "86-{0}", "{1} {2} {3}", "{1}-{2}-{3}")
    return r.choice(shapes).format(number, number[:3], number[3:7], number[7:])


def landline(r: random.Random) -> str:
    area, size = r.choice((("010", 8), ("021", 8), ("0755", 8), ("0571", 8), ("0431", 8)))
    rest = f"{r.randint(2, 8)}{_digits(r, size - 1)}"
    hotline = f"400-{_digits(r, 3)}-{_digits(r, 4)}"
    return r.choice((f"{area}-{rest}", f"({area}){rest}", f"{area} {rest}", hotline))


def email(r: random.Random) -> str:
    name = "".join(r.choices("abcdefghijkmnpqrstuvwxyz", k=r.randint(4, 9)))
    host = r.choice(("163.com", "qq.com", "example.com.cn", "mail.example.org"))
    return f"{name}{r.choice(('', '.li', '_88', '2024'))}@{host}"


def resident(r: random.Random) -> str:
    area = r.choice(("110101", "310104", "440305", "510107", "330106"))
    born = f"{r.randint(1950, 2012)}{r.randint(1, 12):02}{r.randint(1, 28):02}"
    head = f"{area}{born}{_digits(r, 3)}"
    return head + _IDS[sum(w * int(d) for w, d in zip(_WEIGHTS, head, strict=True)) % 11]


def card(r: random.Random) -> str:
    head = r.choice(("6222", "6217", "6228", "4392", "5187")) + _digits(r, r.choice((11, 14)))
    total = sum(sum(divmod(2 * int(d), 10)) for d in head[::-2]) + sum(map(int, head[-2::-2]))
    number = head + str(-total % 10)
    if len(number) == 16 and r.random() < 0.4:
        return " ".join(number[n : n + 4] for n in range(0, 16, 4))
    return number


def qq(r: random.Random) -> str:
    return f"{r.randint(1, 9)}{_digits(r, r.randint(5, 9))}"


def wechat(r: random.Random) -> str:
    return (
        "".join(r.choices("abcdefghjkmnpqrstuvwxyz", k=5))
        + r.choice(("_", "-", ""))
        + _digits(r, 4)
    )


def address(r: random.Random) -> str:
    city = r.choice(("杭州市西湖区", "成都市武侯区", "南京市", ""))
    road = r.choice(("文三路", "人民南路", "中山路", "长江西街", "解放大道"))
    return f"{city}{road}{r.randint(1, 999)}号{r.choice(('', '3栋502室', '12号楼2单元'))}"


def name(r: random.Random) -> str:
    return r.choice("王李张刘陈杨赵周吴徐孙胡") + r.choice(("伟", "静怡", "子涵", "建国", "秀英"))


#: type → generator and sentences around its value
POSITIVE: dict[str, tuple[Callable[[random.Random], str], tuple[str, ...]]] = {
    "PHONE": (
        mobile,
        (
            "有事请打我手机{}，随时在线。",
            "联系电话：{}",
            "我的号码是{}，加我一下。",
            "快递员{}说放门口了。",
            "请拨打{}咨询，谢谢！",
            "手机号{}已经停机了",
            "请致电{}（张经理）。",
            "微信同号{}",
            "tel:{}",
            "他留的是{}转801。",
        ),
    ),
    "PHONE ": (
        landline,
        (
            "办公室座机是{}，上班时间打。",
            "客服热线{}，早九点到晚六点。",
            "传真：{}",
            "预约请打{}。",
            "总机{}转8012。",
        ),
    ),
    "EMAIL": (
        email,
        (
            "简历请发到{}。",
            "我的邮箱是{}，请查收。",
            "联系邮箱：{}",
            "抄送{}和财务。",
            "写信给{}就行",
            "邮箱{}（工作日回复）",
        ),
    ),
    "ID": (
        resident,
        (
            "身份证号{}。",
            "证件号码：{}，请核对。",
            "我的身份证是{}",
            "持{}办理入住。",
            "请上传{}的正反面。",
            "身份证{}到期了",
        ),
    ),
    "CARD": (
        card,
        (
            "卡号{}，户名同上。",
            "请转到{}这张卡。",
            "银行卡：{}",
            "打到工行{}上",
            "收款账号{}，开户行建行。",
            "{}，招行。",
        ),
    ),
    "QQ": (
        qq,
        (
            "加我QQ{}。",
            "QQ：{}，备注来意。",
            "我的qq号是{}",
            "群主QQ号{}，欢迎加群。",
            "QQ群{}可以下载资料。",
            "扣扣{}，在线等。",
            "有问题加q：{}",
        ),
    ),
    "WECHAT": (
        wechat,
        (
            "微信：{}",
            "加我微信号{}，拉你进群。",
            "我的微信号是{}。",
            "咨询请加vx:{}",
            "微信号为{}，请备注姓名。",
            "我微信{}",
            "wx：{}，秒通过",
        ),
    ),
    "ADDR": (
        address,
        (
            "快递寄到{}。",
            "我住在{}，离地铁很近。",
            "收货地址：{}",
            "公司搬到{}了。",
            "到{}取件，报手机尾号。",
            "{}有家面馆不错。",
        ),
    ),
    "NAME": (
        name,
        (
            "我叫{}，今年刚毕业。",
            "联系人：{}",
            "收件人{}，请放前台。",
            "姓名：{}",
            "我是{}，想咨询一下。",
            "请找{}先生签字。",
            "患者{}，男，五十岁。",
        ),
    ),
}
#: sentences without personal data, around numbers that look like it
LOOK_ALIKES: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("订单号{}已经发货。", lambda r: f"1{r.choice('3456789')}{_digits(r, 9)}"),
    ("运单编号：{}，请查收。", lambda r: f"1{r.choice('3456789')}{_digits(r, 9)}"),
    ("流水号{}，金额无误。", lambda r: _digits(r, 16)),
    ("订单{}退款成功。", lambda r: f"20{_digits(r, 16)}"),
    ("序列号{}的设备要返修。", lambda r: f"SN{_digits(r, 11)}"),
    ("去年营收{}元，同比增长。", lambda r: f"{r.randint(1, 9)}{_digits(r, 10)}"),
    (
        "软件版本{}修复了闪退。",
        lambda r: f"{r.randint(1, 9)}.{r.randint(0, 20)}.{r.randint(0, 20)}.{r.randint(1, 99)}",
    ),
    (
        "请升级到v{}。",
        lambda r: f"{r.randint(1, 9)}.{r.randint(0, 20)}.{r.randint(0, 20)}.{r.randint(1, 99)}",
    ),
    (
        "会议时间{}，请准时。",
        lambda r: f"{r.randint(8, 20)}:{r.randint(10, 59)}:{r.randint(10, 59)}",
    ),
    (
        "日期是{}，别记错。",
        lambda r: f"20{r.randint(10, 26)}-{r.randint(10, 12)}-{r.randint(10, 28)}",
    ),
    ("比分{}，我们赢了。", lambda r: f"{r.randint(50, 120)}-{r.randint(50, 120)}"),
    ("型号E{}的轴承缺货。", lambda r: _digits(r, 8)),
    ("这批货的批号是{}。", lambda r: f"G{_digits(r, 8)}"),
    ("身份证号{}填错了一位。", lambda r: f"110101{r.randint(1950, 2012)}1345{_digits(r, 4)}"),
    ("坐标是{}，误差五米。", lambda r: f"{r.randint(100, 130)}.{_digits(r, 6)}"),
    ("用QQ登录{}次都失败了。", lambda r: str(r.randint(2, 9))),
    ("微信支付{}元。", lambda r: str(r.randint(10, 99999))),
    ("请用微信扫码，第{}位。", lambda r: str(r.randint(10, 999))),
    ("京A级景区有{}家。", lambda r: str(r.randint(10, 99))),
    ("新B{}栋已经封顶。", lambda r: str(r.randint(1, 9))),
    ("王先锋队第{}次出征。", lambda r: str(r.randint(1, 99))),
    ("会员编号{}，积分已到账。", lambda r: f"1{r.choice('3456789')}{_digits(r, 9)}"),
    ("圆周率约等于3.{}。", lambda r: _digits(r, 10)),
    ("二维码内容是{}。", lambda r: _digits(r, 20)),
    ("地铁{}号线今天停运。", lambda r: str(r.randint(1, 18))),
    ("第{}号路灯坏了。", lambda r: str(r.randint(1, 999))),
)


def sentences(seed: int = 7, each: int = 12) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Yield every sentence `each` times, each time with another value."""
    r = random.Random(seed)
    for kind, (value_of, patterns) in POSITIVE.items():
        for pattern in patterns:
            for _ in range(each):
                value = value_of(r)
                yield pattern.format(value), {(kind.strip(), value)}
    for pattern, value_of in LOOK_ALIKES:
        for _ in range(each):
            yield pattern.format(value_of(r)), set()


PRECISION, RECALL = 0.98, 0.95
REPORTED = {"NAME", "ADDR"}  # without a goal
_PLACEHOLDER = re.compile("<([A-Z]+)>")


def spans(text: str) -> set[tuple[str, str]]:
    """Return the type and value of each masked span of a text."""
    parts = _PLACEHOLDER.split(mask_text(text))
    pattern = "".join(re.escape(part) if n % 2 == 0 else "(.+?)" for n, part in enumerate(parts))
    values = re.fullmatch(pattern, text, re.DOTALL)
    return set(zip(parts[1::2], values.groups(), strict=True)) if values else set()


def rates(seed: int = 7) -> dict[str, tuple[int, float, float]]:
    """Return for each type the number of its values, precision and recall."""
    hits: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    for text, values in sentences(seed):
        found = spans(text)
        wanted.update(kind for kind, _ in values)
        masked.update(kind for kind, _ in found)
        hits.update(kind for kind, _ in found & values)
    return {
        kind: (wanted[kind], hits[kind] / max(masked[kind], 1), hits[kind] / max(count, 1))
        for kind, count in sorted(wanted.items())
    }
