"""What a picture is by its bytes, mostly without decoding, and how it is made ready for training.

    bytes ─▶ facts, orientation ─▶ what has to change? ─nothing─▶ the same bytes
                                          │
                                          ▼
                       decode ─▶ resize, turn, crop or pad ─▶ encode ─▶ bytes, facts

`check` and `facts` look at the bytes. `preprocess_options` says what may be asked for, `placement` where pixels go
(numbers only), `pixels` and `codec` decode and encode, `preprocess_picture` does it to one picture. Pixels are arrays
of (height, width, channels), uint8 or uint16.
"""
