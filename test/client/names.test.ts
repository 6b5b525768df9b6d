/** What the client throws can be told apart by name, also where a minifier has renamed its classes. */
import { expect, it } from 'vitest';
import * as errors from '../../src/producer/errors';

const CLASSES = Object.entries(errors).filter(([, value]) => typeof value === 'function' && 'prototype' in value);

it.each(CLASSES.filter(([, value]) => value.prototype instanceof Error))('%s has its own name', (name, value) => {
  const Renamed = value as typeof errors.TocsinError;
  Object.defineProperty(Renamed, 'name', { value: 'x' });
  const error = new Renamed('no', { status: 400, code: 'no', retryable: false });
  expect(error.name).toBe(name);
});
