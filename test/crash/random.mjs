/** Randomness that a seed decides, so that a failing run can be asked for again. */

/** FNV-1a: a seed and a name give the start of a stream of their own. */
function hash(text) {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ char.codePointAt(0), 0x01000193);
  return value >>> 0;
}

/** One stream of random numbers (mulberry32). Actors have one each, so that their interleaving does not matter. */
export class Random {
  #state;

  constructor(seed, name) {
    this.#state = hash(`${seed}/${name}`);
  }

  /** In [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `min` to `max`, both included. */
  int(min, max) {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  /** A key of `weights`, in proportion to its value. */
  weighted(weights) {
    const entries = Object.entries(weights);
    let at = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      at -= weight;
      if (at < 0) return key;
    }
    return entries[entries.length - 1][0];
  }

  /** The list in random order. */
  shuffled(list) {
    const copy = [...list];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [copy[i], copy[j]] = [copy[j], copy[i]];
    }
    return copy;
  }

  /** A UUIDv7 for the time `now`, epoch ms. */
  uuid(now) {
    const hex = (digits) => {
      let text = '';
      for (let i = 0; i < digits; i++) text += this.int(0, 15).toString(16);
      return text;
    };
    const time = now.toString(16).padStart(12, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-${this.pick('89ab')}${hex(3)}-${hex(12)}`;
  }
}
