// Matrices as lists of rows, in double precision.
export const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
export const mean = (numbers) => sum(numbers) / numbers.length;
export const clip = (value, low, high) => Math.min(Math.max(value, low), high);
export const range = (count) => Array.from({ length: count }, (_, i) => i);
export const zeros = (rows, columns) => range(rows).map(() => new Float64Array(columns));
export const transposed = (a) => (a.length ? Array.from(a[0], (_, j) => Float64Array.from(a, (row) => row[j])) : []);
export const picked = (a, rows, columns = rows) => rows.map((i) => Float64Array.from(columns, (j) => a[i][j]));

export function dot(a, b) {
  let all = 0;
  for (let i = 0; i < a.length; i++) all += a[i] * b[i];
  return all;
}

export const applied = (a, vector) => Float64Array.from(a, (row) => dot(row, vector));

export function times(a, b) {
  return a.map((row) => {
    const made = new Float64Array(b.length ? b[0].length : 0);
    for (let k = 0; k < row.length; k++) if (row[k]) for (let j = 0; j < made.length; j++) made[j] += row[k] * b[k][j];
    return made;
  });
}

// The inverse of the lower L with L L' = a.
export function whitening(a) {
  const n = a.length;
  const [lower, inverse] = [zeros(n, n), zeros(n, n)];
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let left = a[i][j];
      for (let k = 0; k < j; k++) left -= lower[i][k] * lower[j][k];
      lower[i][j] = i === j ? Math.sqrt(left) : left / lower[j][j];
    }
  }
  for (let i = 0; i < n; i++) {
    const row = inverse[i];
    for (let k = 0; k < i; k++) for (let j = 0; j <= k; j++) row[j] -= lower[i][k] * inverse[k][j];
    for (let j = 0; j < i; j++) row[j] /= lower[i][i];
    row[i] = 1 / lower[i][i];
  }
  return inverse;
}

// Gauss with partial pivoting.
export function solve(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const n = rows.length;
  for (let at = 0; at < n; at++) {
    let best = at;
    for (let i = at + 1; i < n; i++) if (Math.abs(rows[i][at]) > Math.abs(rows[best][at])) best = i;
    [rows[at], rows[best]] = [rows[best], rows[at]];
    for (let i = at + 1; i < n; i++) {
      const factor = rows[i][at] / rows[at][at];
      for (let j = at; j <= n; j++) rows[i][j] -= factor * rows[at][j];
    }
  }
  const solved = Array(n).fill(0);
  for (let i = n - 1; i >= 0; i--) {
    const known = sum(rows[i].slice(i + 1, n).map((one, j) => one * solved[i + 1 + j]));
    solved[i] = (rows[i][n] - known) / rows[i][i];
  }
  return solved;
}

// Eigenvalues of a symmetric matrix, the smallest first, and a row for each with its vector: Householder's reduction, then
// implicit QL steps (Bowdler, Martin, Reinsch and Wilkinson 1968).
export function eigen(matrix) {
  const n = matrix.length;
  const v = matrix.map((row) => Float64Array.from(row));
  const [d, e] = [new Float64Array(n), new Float64Array(n)];
  tridiagonal(v, d, e);
  diagonal(v, d, e);
  const order = range(n).sort((a, b) => d[a] - d[b]);
  return { values: order.map((i) => d[i]), vectors: order.map((i) => Float64Array.from(v, (row) => row[i])) };
}

function tridiagonal(v, d, e) {
  const n = v.length;
  for (let j = 0; j < n; j++) d[j] = v[n - 1][j];
  for (let i = n - 1; i > 0; i--) {
    let [scale, h] = [0, 0];
    for (let k = 0; k < i; k++) scale += Math.abs(d[k]);
    if (scale === 0) {
      e[i] = d[i - 1];
      for (let j = 0; j < i; j++) [d[j], v[i][j], v[j][i]] = [v[i - 1][j], 0, 0];
    } else {
      for (let k = 0; k < i; k++) h += (d[k] /= scale) ** 2;
      let f = d[i - 1];
      let g = f > 0 ? -Math.sqrt(h) : Math.sqrt(h);
      e[i] = scale * g;
      h -= f * g;
      d[i - 1] = f - g;
      e.fill(0, 0, i);
      for (let j = 0; j < i; j++) {
        f = v[j][i] = d[j];
        g = e[j] + v[j][j] * f;
        for (let k = j + 1; k < i; k++) {
          g += v[k][j] * d[k];
          e[k] += v[k][j] * f;
        }
        e[j] = g;
      }
      f = 0;
      for (let j = 0; j < i; j++) f += (e[j] /= h) * d[j];
      for (let j = 0; j < i; j++) e[j] -= (f / (h + h)) * d[j];
      for (let j = 0; j < i; j++) {
        for (let k = j; k < i; k++) v[k][j] -= d[j] * e[k] + e[j] * d[k];
        [d[j], v[i][j]] = [v[i - 1][j], 0];
      }
    }
    d[i] = h;
  }
  for (let i = 0; i < n - 1; i++) {
    [v[n - 1][i], v[i][i]] = [v[i][i], 1];
    const h = d[i + 1];
    if (h !== 0) {
      for (let k = 0; k <= i; k++) d[k] = v[k][i + 1] / h;
      for (let j = 0; j <= i; j++) {
        let g = 0;
        for (let k = 0; k <= i; k++) g += v[k][i + 1] * v[k][j];
        for (let k = 0; k <= i; k++) v[k][j] -= g * d[k];
      }
    }
    for (let k = 0; k <= i; k++) v[k][i + 1] = 0;
  }
  for (let j = 0; j < n; j++) [d[j], v[n - 1][j]] = [v[n - 1][j], 0];
  if (n) [v[n - 1][n - 1], e[0]] = [1, 0];
}

function diagonal(v, d, e) {
  const n = v.length;
  for (let i = 1; i < n; i++) e[i - 1] = e[i];
  if (n) e[n - 1] = 0;
  let [f, largest] = [0, 0];
  for (let l = 0; l < n; l++) {
    largest = Math.max(largest, Math.abs(d[l]) + Math.abs(e[l]));
    let m = l;
    while (m < n - 1 && Math.abs(e[m]) > 2 ** -52 * largest) m++;
    if (m > l) {
      do {
        let g = d[l];
        let p = (d[l + 1] - g) / (2 * e[l]);
        let r = p < 0 ? -Math.hypot(p, 1) : Math.hypot(p, 1);
        d[l] = e[l] / (p + r);
        d[l + 1] = e[l] * (p + r);
        const ahead = d[l + 1];
        let h = g - d[l];
        for (let i = l + 2; i < n; i++) d[i] -= h;
        f += h;
        p = d[m];
        let [c, c2, c3, s, s2] = [1, 1, 1, 0, 0];
        const below = e[l + 1];
        for (let i = m - 1; i >= l; i--) {
          [c3, c2, s2] = [c2, c, s];
          g = c * e[i];
          h = c * p;
          r = Math.hypot(p, e[i]);
          e[i + 1] = s * r;
          s = e[i] / r;
          c = p / r;
          p = c * d[i] - s * g;
          d[i + 1] = h + s * (c * g + s * d[i]);
          for (let k = 0; k < n; k++) {
            const row = v[k];
            h = row[i + 1];
            row[i + 1] = s * row[i] + c * h;
            row[i] = c * row[i] - s * h;
          }
        }
        p = (-s * s2 * c3 * below * e[l]) / ahead;
        e[l] = s * p;
        d[l] = c * p;
      } while (Math.abs(e[l]) > 2 ** -52 * largest);
    }
    d[l] += f;
    e[l] = 0;
  }
}

// The sum of doubles, rounded once: parts that do not overlap are kept (Shewchuk 1997), and added from the largest on.
export function exactSum(numbers) {
  if (numbers.length === 2) return numbers[0] + numbers[1];
  const parts = [];
  for (let one of numbers) {
    let kept = 0;
    for (let other of parts) {
      if (Math.abs(one) < Math.abs(other)) [one, other] = [other, one];
      const high = one + other;
      const low = other - (high - one);
      if (low) parts[kept++] = low;
      one = high;
    }
    parts.length = kept;
    parts.push(one);
  }
  let [total, low] = [parts.pop() ?? 0, 0];
  while (parts.length && !low) {
    const [before, next] = [total, parts.pop()];
    total = before + next;
    low = next - (total - before);
  }
  // Half of a last digit, and more of the same sign below it.
  const twice = 2 * low;
  return parts.length && low * parts.at(-1) > 0 && total + twice - total === twice ? total + twice : total;
}
