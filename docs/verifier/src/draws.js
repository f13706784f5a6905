// Standard normal numbers from a seed, as numpy draws them: SeedSequence, PCG64, a ziggurat of 256 layers (docs/protocol.md, "The draws of the test").
const [MULT_A, MULT_B, MIX_L, MIX_R] = [0x931e8875, 0x58f38ded, 0xca01f9dd, 0x4973f715];
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const [LAYERS, R, AREA] = [256, 3.6541528853610088, 0.004928673233974655];

// Eight words of 32 bits from a number below 2^32.
function words(seed) {
  let factor = 0x43b0d7e5;
  const hashed = (value) => {
    let own = value ^ factor;
    factor = Math.imul(factor, MULT_A);
    own = Math.imul(own, factor);
    return (own ^ (own >>> 16)) >>> 0;
  };
  const pool = [seed, 0, 0, 0].map(hashed);
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) {
      if (from === to) continue;
      const mixed = (Math.imul(pool[to], MIX_L) - Math.imul(hashed(pool[from]), MIX_R)) >>> 0;
      pool[to] = (mixed ^ (mixed >>> 16)) >>> 0;
    }
  }
  let state = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    let own = pool[i % 4] ^ state;
    state = Math.imul(state, MULT_B);
    own = Math.imul(own, state);
    return (own ^ (own >>> 16)) >>> 0;
  });
}

const wide = (value) => BigInt.asUintN(128, value);

class Pcg64 {
  constructor(seed) {
    const own = words(seed).map(BigInt);
    const [high, low, third, last] = [0, 2, 4, 6].map((i) => own[i] | (own[i + 1] << 32n));
    this.step = wide((((third << 64n) | last) << 1n) | 1n);
    this.state = wide((this.step + ((high << 64n) | low)) * MULTIPLIER + this.step);
  }

  next() {
    this.state = wide(this.state * MULTIPLIER + this.step);
    const mixed = (this.state >> 64n) ^ (this.state & 0xffffffffffffffffn);
    const turn = this.state >> 122n;
    return BigInt.asUintN(64, (mixed >> turn) | (mixed << (64n - turn)));
  }

  unit() {
    return Number(this.next() >> 11n) / 2 ** 53;
  }
}

const density = (x) => Math.exp((-x * x) / 2);

// Of each layer its width over 2^52, the density at its end, and the part that lies wholly below the curve.
function layers() {
  const ends = Array(LAYERS).fill(R);
  for (let i = LAYERS - 2; i > 0; i--) ends[i] = Math.sqrt(-2 * Math.log(AREA / ends[i + 1] + density(ends[i + 1])));
  const widths = [AREA / density(R), ...ends.slice(1)];
  const inside = widths.map((width, i) => (i === 1 ? 0 : (i === 0 ? R : widths[i - 1]) / width));
  return { widths, inside, heights: widths.map((width, i) => (i === 0 ? 1 : density(width))) };
}

export function* normals(seed) {
  const [source, { widths, inside, heights }] = [new Pcg64(seed), layers()];
  for (;;) {
    const bits = source.next();
    const [layer, part] = [Number(bits & 255n), Number((bits >> 9n) & 0xfffffffffffffn) / 2 ** 52];
    const sign = (bits >> 8n) & 1n ? -1 : 1;
    const x = part * widths[layer];
    if (part < inside[layer]) yield sign * x;
    else if (layer === 0) {
      let [far, high] = [0, 0];
      do [far, high] = [-Math.log1p(-source.unit()) / R, -Math.log1p(-source.unit())]; while (high + high <= far * far);
      yield (bits >> 17n) & 1n ? -(R + far) : R + far;
    } else if ((heights[layer - 1] - heights[layer]) * source.unit() + heights[layer] < density(x)) yield sign * x;
  }
}
