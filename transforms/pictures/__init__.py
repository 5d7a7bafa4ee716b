"""What a picture is by its bytes, mostly without decoding, and how it is made ready for training.

    bytes ─▶ facts, orientation ─▶ what has to change? ─nothing─▶ the same bytes
                                          │
                                          ▼
                       decode ─▶ resize, turn, crop or pad ─▶ encode ─▶ bytes, facts

`structure` and `facts` look at the bytes. `facts.Preprocess` says what may be asked for, `preprocess` says where pixels
go and does it to one picture, `codec` and `pillow_decode` decode and encode, `masks` draws masks. Pixels are arrays of
(height, width, channels), uint8 or uint16.
"""
