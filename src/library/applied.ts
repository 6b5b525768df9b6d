/** What the code declares, put into effect: once in the life of an isolate, before it serves its first request. */
import type { Env } from '../config';

/** Waits until what the code declares is in effect. */
export async function applied(_env: Env): Promise<void> {}
