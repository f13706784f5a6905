"""How well parties with many records each learn by `averaging` and `transfer`, on public data: docs/parties.md.

Data sets: Adult for averaging, KDD Cup 99 for transfer, and activities and addresses for more. Pathak, Rane and Raj
(2010) and Hamm, Cao and Belkin (2016) measured the first of each. Nothing here ships data.
"""
