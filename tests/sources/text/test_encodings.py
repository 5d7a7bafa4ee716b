"""The encoding of text that is not UTF-8, as its letters show it; none is named where they show none."""

from __future__ import annotations

import pytest
from shardmill.transforms.sources.text.open_text import likely_encoding


@pytest.mark.parametrize(
    ("text", "encoding", "likely"),
    [
        ("Zażółć gęślą jaźń; Wysłane", "cp1250", "cp1250"),
        ("Příbram, Žďár, kůň", "cp1250", "cp1250"),
        ("Částka;Město;Kč", "cp1250", "cp1250"),
        ("sürgős;Összeg", "cp1250", "cp1250"),
        ("Клієнт;Їжак;Київ", "cp1251", "cp1251"),
        ("caffè così però; où août déjà; milhões opções não; õppija ülesanne käsi", "cp1252", ""),
        ("Привет, МИР, приветствую", "cp1251", "cp1251"),
        ("東京都,大阪府,8個\n", "cp932", "cp932"),
        ("至急,該当なし,2024年4月1日\n", "cp932", "cp932"),
        ("東京とこ", "euc_jp", "euc_jp"),
        ("café, février, étude, Fußgänger, niño, señor é", "cp1252", ""),
        ("l\u2019été \u2013 5 € naïve; Genève, Zürich; 5 m³", "cp1252", ""),
        ("北京市,上海市,测试\n", "gb18030", "gb18030"),
        ("订单编号,下单日期,姓名\nA1,2024年1月3日,王小明 无\n", "gbk", "gb18030"),
        ("訂單編號,日期,姓名\nA1,2024年1月3日,陳大文 無備註\n", "big5", "big5"),
        ("주문번호,날짜,이름\nA1,2024년 1월 3일,김철수\n", "cp949", "cp949"),
        ("Şehir;Ağırlık;İade edildi;Çok güzel", "cp1254", "cp1254"),
        ("Það er gott að lesa íslensku; Þórður, býr", "cp1252", ""),
        ("Összeg;Idő;Hűtő;Győr, május", "cp1250", "cp1250"),
        ("Bucureşti;şi;judeţ;Piaţa", "cp1250", "cp1250"),
        ("São João, opções, põe; nº 5; 3º andar", "cp1252", ""),
        ("Tid;Måling (°C);Støv (µg/m³)", "cp1252", ""),
        ("t;T (°C);F (°F)", "cp1252", ""),
        ("Müller, Köln, françois, dû à l'été", "cp1252", ""),
        ("Ελληνικά κείμενα, παράδειγμα", "cp1253", "cp1253"),
        ("שלום עולם, דוגמה", "cp1255", ""),
        ("ภาษาไทย, ตัวอย่าง", "cp874", ""),
    ],
)
def test_the_letters_of_a_text_show_its_encoding(text: str, encoding: str, likely: str) -> None:
    assert likely_encoding(text.encode(encoding)) == likely
