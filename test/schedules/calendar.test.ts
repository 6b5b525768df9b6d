/** Which days an expression matches: shown against a reader of the day fields that goes through every day of many years. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseExpression } from '../../src/schedules/expression';
import { firesBetween } from '../../src/schedules/schedule';
import { histories } from '../support/long';

const DAY = 86_400_000;

/** A day, as the rules below ask about it. */
interface Day {
  day: number;
  weekday: number;
  /** How many days the month has. */
  length: number;
}

/** An entry of a day field: how it is written, and the days that it means. */
interface Entry {
  text: string;
  fits: (day: Day) => boolean;
}

const dayNumber = fc.integer({ min: 1, max: 31 });
const weekday = fc.integer({ min: 0, max: 6 });

/** The working day that is nearest, in the same month. */
function nearest(wanted: number, { day, weekday: today, length }: Day): number {
  const weekdayOf = (other: number) => (today + (other - day) + 70) % 7;
  const isWorkday = (other: number) => other >= 1 && other <= length && weekdayOf(other) >= 1 && weekdayOf(other) <= 5;
  const others = [wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2];
  return wanted > length ? 0 : (others.find(isWorkday) ?? 0);
}

const inMonth: fc.Arbitrary<Entry> = fc.oneof(
  dayNumber.map((wanted) => ({ text: `${wanted}`, fits: ({ day }: Day) => day === wanted })),
  fc.tuple(dayNumber, dayNumber, fc.integer({ min: 1, max: 31 })).map(([a, b, step]) => {
    const [from, to] = a <= b ? [a, b] : [b, a];
    return {
      text: `${from}-${to}/${step}`,
      fits: ({ day }: Day) => day >= from && day <= to && (day - from) % step === 0,
    };
  }),
  dayNumber.map((wanted) => ({ text: `${wanted}W`, fits: (day: Day) => day.day === nearest(wanted, day) })),
  fc.constant({ text: 'L', fits: ({ day, length }: Day) => day === length }),
  fc.constant({ text: 'LW', fits: (day: Day) => day.day === nearest(day.length, day) }),
);

const inWeek: fc.Arbitrary<Entry> = fc.oneof(
  weekday.map((wanted) => ({ text: `${wanted}`, fits: (day: Day) => day.weekday === wanted })),
  weekday.map((wanted) => ({
    text: `${wanted}L`,
    fits: (day: Day) => day.weekday === wanted && day.day + 7 > day.length,
  })),
  fc.tuple(weekday, fc.integer({ min: 1, max: 5 })).map(([wanted, nth]) => ({
    text: `${wanted}#${nth}`,
    fits: (day: Day) => day.weekday === wanted && Math.floor((day.day - 1) / 7) === nth - 1,
  })),
);

const ANY: Entry = { text: '*', fits: () => true };
const several = (entry: fc.Arbitrary<Entry>) =>
  fc.oneof(fc.constant([ANY]), fc.array(entry, { minLength: 1, maxLength: 3 }));

it('a schedule fires on exactly the days that its two day fields name', () => {
  const years = fc.integer({ min: 1970, max: 2400 });
  fc.assert(
    fc.property(several(inMonth), several(inWeek), years, (days, weekdays, year) => {
      const fits = (entries: readonly Entry[], day: Day) => entries.some((entry) => entry.fits(day));
      const isEither = days[0] !== ANY && weekdays[0] !== ANY;
      const expected: number[] = [];
      const [start, end] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1) - 1];
      for (let at = start; at <= end; at += DAY) {
        const date = new Date(at);
        const day = {
          day: date.getUTCDate(),
          weekday: date.getUTCDay(),
          length: new Date(Date.UTC(year, date.getUTCMonth() + 1, 0)).getUTCDate(),
        };
        const [one, other] = [fits(days, day), fits(weekdays, day)];
        if (isEither ? one || other : one && other) expected.push(at);
      }
      const text = `0 0 ${days.map((entry) => entry.text).join(',')} * ${weekdays.map((entry) => entry.text).join(',')}`;
      const schedule = { expression: parseExpression(text, 'expression'), zone: 'UTC', anchor: 0 };
      expect(firesBetween(schedule, start - 1, end, 1000), text).toEqual(expected);
    }),
    { numRuns: histories(150) },
  );
});
