"""Pictures made ready for training before they are written: smaller, turned, in one format, in one colour space.

    bytes ─▶ facts, orientation ─▶ what has to change? ─nothing─▶ the same bytes
                                          │
                                          ▼
                       decode ─▶ resize, turn, crop or pad ─▶ encode ─▶ bytes, facts

`options.py` says what may be asked for, `placement.py` where pixels go (numbers only), `pixels.py` and `codec.py`
decode and encode, `picture.py` does it to one picture. Pixels are arrays of (height, width, channels), uint8 or uint16.
"""
