"""Names in \\p{…} that Go's regexp accepts: Unicode's categories and scripts, version 15.

Spelled as in its tables up to Go 1.24, with which Kubernetes 1.34 is built; Go 1.25 also accepts the long
names of categories, in any case. A name that any of them accepts is accepted here.
"""

from __future__ import annotations

from typing import Final

_CATEGORIES: Final = """
    C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl
    Zp Zs
"""
_LONG_CATEGORIES: Final = """
    Cased_Letter Close_Punctuation Combining_Mark Connector_Punctuation Control Currency_Symbol
    Dash_Punctuation Decimal_Number Enclosing_Mark Final_Punctuation Format Initial_Punctuation Letter
    Letter_Number Line_Separator Lowercase_Letter Mark Math_Symbol Modifier_Letter Modifier_Symbol
    Nonspacing_Mark Number Open_Punctuation Other Other_Letter Other_Number Other_Punctuation
    Other_Symbol Paragraph_Separator Private_Use Punctuation Separator Space_Separator Spacing_Mark
    Surrogate Symbol Titlecase_Letter Unassigned Uppercase_Letter cntrl digit punct
"""
_SCRIPTS: Final = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali
    Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian
    Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret
    Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian
    Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo
    Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian
    Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi
    Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic
    Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive
    Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari
    New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya
    Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic
    Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo
    Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut
    Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi
    Zanabazar_Square
"""
_SETS: Final = "Any ASCII Assigned"

_IGNORED: Final = str.maketrans("", "", "_- ")


def is_unicode_class(name: str) -> bool:
    """``name`` without the ``^`` that negates it."""
    return _folded(name) in _KNOWN


def _folded(name: str) -> str:
    return name.lower().translate(_IGNORED)


_KNOWN: Final = frozenset(
    _folded(name) for name in f"{_CATEGORIES} {_LONG_CATEGORIES} {_SCRIPTS} {_SETS}".split()
)
