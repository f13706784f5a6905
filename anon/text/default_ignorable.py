"""Code points that are drawn as nothing, or as blank, though their category says otherwise.

`DEFAULT_IGNORABLE` is the property Default_Ignorable_Code_Point of Unicode 17.0 (DerivedCoreProperties.txt; the same
since 14.0), which Python's `unicodedata` lacks. `BLANK` lists by hand, from the code charts, what is assigned as a
letter, mark or symbol and has no ink.
"""

from __future__ import annotations

DEFAULT_IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
BLANK = (
    (0x2800, 0x2800),  # braille pattern blank
    (0x303F, 0x303F),  # ideographic half fill space
    (0xFFFC, 0xFFFC),  # object replacement character
    (0x1107F, 0x1107F),  # Brahmi number joiner
    (0x13441, 0x13442),  # Egyptian hieroglyph full and half blank
    (0x16FE4, 0x16FE4),  # Khitan small script filler
    (0x1D159, 0x1D159),  # musical symbol null notehead
)
