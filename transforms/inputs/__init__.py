"""What comes in, before any format: the contract that every source keeps, and files on a disk or in a store."""
