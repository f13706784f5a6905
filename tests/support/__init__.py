"""Parts that tests of several folders stand on: networks in memory, clocks, typed commands, browsers, witnesses."""
