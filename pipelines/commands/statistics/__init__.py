"""The commands `stats` and `report`: the figures of a dataset, or of other TFRecord files, as tables or a page."""
