import { getOrInsert } from '../job/get-or-insert';

/** Stored facts cached by an isolate must be forgotten when storage is emptied: routes are given out again. */
const forgetting: (() => void)[] = [];

/** Runs `forget` whenever storage is emptied. Each module that remembers something of it calls this while it loads. */
export function onEmptied(forget: () => void): void {
  forgetting.push(forget);
}

/** What an isolate remembers of each deployment, made at its first use. */
export function perDeployment<Env extends object, T>(make: (env: Env) => T): (env: Env) => T {
  let made = new WeakMap<Env, T>();
  onEmptied(() => {
    made = new WeakMap();
  });
  return (env) => getOrInsert(made, env, () => make(env));
}

/** Storage was emptied: this isolate forgets what was there. Others are not notified; only tests empty storage. */
export function forgetStored(): void {
  for (const forget of forgetting) forget();
}
