import { FIRST_CHOSEN, mintId, RANK_BIT, routeCandidate } from '../job/ids';

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

/** UUIDv7 ids that name their job's queue, with a number that rises from a random start. @param now epoch ms */
export function jobIds(now: () => number, random: () => number): (queue: string) => string {
  const first = FIRST_CHOSEN + Math.floor(random() * 2) * RANK_BIT;
  let number = Math.floor(random() * FIRST_CHOSEN);
  let last: { queue: string; route: number } | undefined;
  return (queue) => {
    number = (number + 1) % FIRST_CHOSEN;
    if (last?.queue !== queue) last = { queue, route: routeCandidate(queue, 0) };
    return mintId(now(), last.route, first + number);
  };
}
