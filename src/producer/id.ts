/** A UUIDv7 (RFC 9562 §5.7): 48 bits of Unix ms, version, random bits. @param now epoch ms @param random in [0, 1) */
export function uuidv7(now: number, random: () => number): string {
  const bytes = Array.from({ length: 16 }, (_, index) =>
    index < 6 ? Math.floor(now / 2 ** (8 * (5 - index))) % 256 : Math.floor(random() * 256),
  );
  const hex = bytes.map((byte, index) => {
    const marked = index === 6 ? 0x70 | (byte & 0x0f) : index === 8 ? 0x80 | (byte & 0x3f) : byte;
    return marked.toString(16).padStart(2, '0');
  });
  const part = (from: number, to: number): string => hex.slice(from, to).join('');
  return [part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16)].join('-');
}

/** Below this number come those that the server gives out itself. */
const FIRST_CHOSEN = 2 ** 40;

/**
 * UUIDv7 ids that name their job's queue, as the server's own do: 32 bits of a hash of its name, and 42 bits of a
 * number that rises from a random start. @param now epoch ms @param random in [0, 1)
 */
export function jobIds(now: () => number, random: () => number): (queue: string) => string {
  const rank = Math.floor(random() * 2) * 2 * FIRST_CHOSEN;
  let number = Math.floor(random() * FIRST_CHOSEN);
  // Ids of one millisecond and one queue begin alike, and 24 bits are written faster than a large number.
  let last: { at: number; queue: string; start: string; low: number } | undefined;
  return (queue) => {
    number = (number + 1) % FIRST_CHOSEN;
    const at = now();
    if (last?.queue !== queue || last.at !== at) {
      const route = hashOf(queue);
      const time = hex(at, 12);
      const [high, middle, low] = [route >>> 20, (route >>> 6) % 2 ** 14, route % 2 ** 6];
      const start = `${time.slice(0, 8)}-${time.slice(8)}-7${hex(high, 3)}-${hex(0x8000 + middle, 4)}-`;
      last = { at, queue, start, low };
    }
    const tail = last.low * 2 ** 42 + rank + FIRST_CHOSEN + number;
    return last.start + hex(Math.floor(tail / 2 ** 24), 6) + hex(tail % 2 ** 24, 6);
  };
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/** 32-bit FNV-1a, as the server hashes the names of queues. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
