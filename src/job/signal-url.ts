/** URLs that send signals, as the steps of a job have them. */

export const SIGNAL_PATH = '/ojs/v1/signal/';

/** Is this the record of a signal URL? It lets its readers send the signal. */
export const isSignalUrl = (name: string, result: unknown): boolean =>
  name.startsWith('url:') && typeof result === 'string' && result.includes(SIGNAL_PATH);
