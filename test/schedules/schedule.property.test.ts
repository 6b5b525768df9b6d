/** What holds for every expression, zone and moment: shown against a reader of expressions that shares nothing with the product. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseExpression } from '../../src/schedules/expression';
import { dueFires } from '../../src/schedules/missed';
import { firesBetween, lastFire, nextFire, type Schedule } from '../../src/schedules/schedule';
import { histories } from '../support/long';

const MINUTE = 60_000;

/** A field as a set of numbers, and a way to write it. */
const field = (min: number, max: number) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant({ text: '*', values: range(min, max) }) },
    fc.integer({ min, max }).map((value) => ({ text: String(value), values: [value] })),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(([a, b]) => {
      const [from, to] = a <= b ? [a, b] : [b, a];
      return { text: `${from}-${to}`, values: range(from, to) };
    }),
    fc.integer({ min: 2, max: max - min }).map((step) => ({
      text: `*/${step}`,
      values: range(min, max).filter((value) => (value - min) % step === 0),
    })),
    fc
      .uniqueArray(fc.integer({ min, max }), { minLength: 2, maxLength: 4 })
      .map((values) => ({ text: values.join(','), values })),
  );

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

const fields = fc.record({
  minute: field(0, 59),
  hour: field(0, 23),
  day: field(1, 31),
  month: field(1, 12),
  weekday: field(0, 6),
});

type Fields = typeof fields extends fc.Arbitrary<infer T> ? T : never;

const textOf = (f: Fields) => [f.minute, f.hour, f.day, f.month, f.weekday].map(({ text }) => text).join(' ');

const zones = fc.constantFrom(
  'UTC',
  'America/New_York',
  'Europe/Paris',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'America/Sao_Paulo',
  'Africa/Casablanca',
  'Pacific/Chatham',
);

const instants = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) });

function scheduleOf(text: string, zone: string): Schedule {
  return { expression: parseExpression(text, 'expression'), zone, anchor: Date.UTC(2024, 0, 1) };
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** The local time of an instant, from the platform's own formatting. */
function local(zone: string, at: number) {
  const formatter =
    formatters.get(zone) ??
    new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      hourCycle: 'h23',
      weekday: 'short',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  formatters.set(zone, formatter);
  const parts = formatter.formatToParts(at);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? '';
  return {
    minute: Number(part('minute')),
    hour: Number(part('hour')),
    day: Number(part('day')),
    month: Number(part('month')),
    weekday: ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'].indexOf(part('weekday')),
    second: Number(part('second')),
  };
}

function matches(f: Fields, zone: string, at: number): boolean {
  const now = local(zone, at);
  const dayMatches = f.day.values.includes(now.day);
  const weekdayMatches = f.weekday.values.includes(now.weekday);
  const days = f.day.text === '*' ? weekdayMatches : f.weekday.text === '*' ? dayMatches : dayMatches || weekdayMatches;
  return (
    now.second === 0 &&
    f.minute.values.includes(now.minute) &&
    f.hour.values.includes(now.hour) &&
    f.month.values.includes(now.month) &&
    days
  );
}

/** Does the clock change in the hours before or after? There the matching is not one to one. */
function nearChange(zone: string, at: number): boolean {
  const wall = (time: number) => {
    const { hour, minute } = local(zone, time);
    return hour * 60 + minute;
  };
  return [-3, 3].some((hours) => {
    const moved = (wall(at + hours * 60 * MINUTE) - wall(at) + 2 * 1440) % 1440;
    return moved !== (hours * 60 + 2 * 1440) % 1440;
  });
}

describe('the next fire', () => {
  it('lies strictly after the moment asked about, and matches unless the clock has just changed', () => {
    fc.assert(
      fc.property(fields, zones, instants, (f, zone, after) => {
        const next = nextFire(scheduleOf(textOf(f), zone), after);
        if (next === undefined) return true;
        expect(next).toBeGreaterThan(after);
        return matches(f, zone, next) || nearChange(zone, next);
      }),
      { numRuns: histories(400) },
    );
  });

  it('is the first minute that matches', () => {
    fc.assert(
      fc.property(fields, zones, instants, (f, zone, after) => {
        const schedule = scheduleOf(textOf(f), zone);
        const until = after + 6 * 60 * MINUTE;
        const found = firesBetween(schedule, after, until, 1000);
        const expected: number[] = [];
        for (let at = (Math.floor(after / MINUTE) + 1) * MINUTE; at <= until; at += MINUTE) {
          if (nearChange(zone, at)) return true;
          if (matches(f, zone, at)) expected.push(at);
        }
        expect(found).toEqual(expected);
        return true;
      }),
      { numRuns: histories(150) },
    );
  });

  it('does not depend on where between two fires one stands', () => {
    fc.assert(
      fc.property(fields, zones, instants, fc.double({ min: 0, max: 1, noNaN: true }), (f, zone, after, share) => {
        const schedule = scheduleOf(textOf(f), zone);
        const next = nextFire(schedule, after);
        if (next === undefined) return true;
        return nextFire(schedule, Math.floor(after + (next - 1 - after) * share)) === next;
      }),
      { numRuns: histories(300) },
    );
  });

  it('comes in order, each once, over the changes of a whole year', () => {
    fc.assert(
      fc.property(fields, zones, instants, (f, zone, after) => {
        const fires = firesBetween(scheduleOf(textOf(f), zone), after, after + 400 * 1440 * MINUTE, 300);
        return fires.every((at, index) => index === 0 || at > (fires[index - 1] as number));
      }),
      { numRuns: histories(60) },
    );
  });

  it('of an interval lies on the anchor plus whole intervals', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 1e9 }), instants, instants, (ms, anchor, after) => {
        const schedule: Schedule = { expression: { kind: 'every', ms }, zone: 'UTC', anchor };
        const next = nextFire(schedule, after) as number;
        return next > after && (next - anchor) % ms === 0 && (next === anchor || next - ms <= Math.max(after, anchor));
      }),
    );
  });
});

describe('a window', () => {
  it('is kept on both ends', () => {
    fc.assert(
      fc.property(fields, zones, instants, fc.nat(90 * 1440), fc.nat(90 * 1440), (f, zone, after, offset, length) => {
        const start = after + (offset - 45 * 1440) * MINUTE;
        const end = start + length * MINUTE;
        const open = scheduleOf(textOf(f), zone);
        const inWindow = firesBetween({ ...open, start, end }, after, Number.POSITIVE_INFINITY, 200);
        const expected = firesBetween(open, Math.max(after, start - 1), end, 200);
        expect(inWindow).toEqual(expected);
        return true;
      }),
      { numRuns: histories(100) },
    );
  });
});

describe('the last fire up to a moment', () => {
  it('is the one that going through all of them finds', () => {
    fc.assert(
      fc.property(fields, zones, instants, fc.integer({ min: 0, max: 3 * 1440 * MINUTE }), (f, zone, after, span) => {
        const schedule = scheduleOf(textOf(f), zone);
        const from = nextFire(schedule, after);
        if (from === undefined) return true;
        const all = [from, ...firesBetween(schedule, from, from + span, 10_000)];
        return lastFire(schedule, from, from + span) === all.at(-1);
      }),
      { numRuns: histories(60) },
    );
  });

  it('of intervals that do not lie on whole seconds is found as well', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 9000 }), instants, fc.nat(100_000), (ms, anchor, span) => {
        const schedule: Schedule = { expression: { kind: 'every', ms }, zone: 'UTC', anchor };
        return lastFire(schedule, anchor, anchor + span) === anchor + Math.floor(span / ms) * ms;
      }),
    );
  });

  it('is found at once, however many were missed', () => {
    const everySecond = scheduleOf('* * * * * *', 'America/New_York');
    const now = Date.UTC(2029, 0, 1) + 300;
    expect(lastFire(everySecond, Date.UTC(2024, 0, 1), now)).toBe(Date.UTC(2029, 0, 1));
  });
});

describe('fires that are due', () => {
  const hourly = scheduleOf('0 * * * *', 'UTC');
  const at = (hour: number, minute = 0) => Date.UTC(2026, 0, 1, hour, minute);

  it('fire alone when they are on time, under every policy', () => {
    for (const policy of ['skip', 'fire_once', 'fire_all'] as const) {
      expect(dueFires(hourly, at(1), at(1) + 50, policy, 10)).toEqual({ fires: [at(1)], next: at(2) });
    }
  });

  it('are dropped by skip when they come too late, except one that is on time', () => {
    expect(dueFires(hourly, at(1), at(4, 30), 'skip', 10)).toEqual({
      fires: [],
      dropped: { from: at(1), until: at(4) },
      next: at(5),
    });
    expect(dueFires(hourly, at(1), at(4) + 1000, 'skip', 10)).toEqual({
      fires: [at(4)],
      dropped: { from: at(1), until: at(3) },
      next: at(5),
    });
  });

  it('fire once for all by fire_once, the last one standing for them', () => {
    expect(dueFires(hourly, at(1), at(4, 30), 'fire_once', 10)).toEqual({
      fires: [at(4)],
      dropped: { from: at(1), until: at(3) },
      next: at(5),
    });
  });

  it('all fire by fire_all, up to the bound, from the oldest on', () => {
    expect(dueFires(hourly, at(1), at(4, 30), 'fire_all', 10)).toEqual({
      fires: [at(1), at(2), at(3), at(4)],
      next: at(5),
    });
    expect(dueFires(hourly, at(1), at(4, 30), 'fire_all', 2)).toEqual({
      fires: [at(1), at(2)],
      dropped: { from: at(3), until: at(4) },
      next: at(5),
    });
  });
});
