"""The command `report`: write the page that shows what is in a dataset."""
