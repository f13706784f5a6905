"""The formats that an import reads, one module each, and `detect`, which names what a file is.

Every format is a `Source` of records over an `Origin` that can be opened again: memory stays bounded whatever the file
is, a record that cannot be read is counted by its number and passed over, and no message quotes any of it.
"""
