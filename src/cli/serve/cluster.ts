/** Processes that share the objects, each with one owner and its state in an S3-compatible bucket. Experimental. */
import { usageError } from '../failure';

export const OF_THE_CLUSTER: readonly string[] = [
  'CLUSTER_KEY',
  'AWS_ENDPOINT_URL',
  'AWS_REGION',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_CREDENTIALS_FILE',
];

/** workerd takes no shorter key, bytes. */
const MIN_KEY = 32;

/** The first workerd that survives calling a process that is ending; earlier ones abort until their lease ends. */
const SOUND_SINCE = 20_261_117;

/** What to warn of. @param version of workerd, such as 1.20261117.1 */
export function clusterWarning(version: string): string[] {
  if (Number(version.split('.')[1]) >= SOUND_SINCE) return [];
  return [
    `workerd ${version} may abort when another process of the cluster ends, and its queues take no writes for 20 s then: npm install workerd@1 brings a newer one`,
  ];
}

const THIS_MACHINE = '127.0.0.1:0';

export interface ClusterOptions {
  /** `s3://bucket/prefix`; absent: no cluster. */
  cluster?: string;
  /** Where this process listens for the others: `host:port`. */
  clusterAddress?: string;
  /** Where the others reach it, if that is another address. */
  clusterAdvertise?: string;
}

export interface Cluster {
  bucket: string;
  address: string;
  advertise?: string;
  key: string;
}

/** What the runtime must know of the cluster. @param variables of {@link OF_THE_CLUSTER} @throws {CliError} */
export function clusterOf(options: ClusterOptions, variables: Readonly<Record<string, string>>): Cluster | undefined {
  const { cluster: bucket, clusterAddress: address = THIS_MACHINE, clusterAdvertise: advertise } = options;
  if (bucket === undefined) {
    if (advertise === undefined && options.clusterAddress === undefined) return undefined;
    throw usageError('--cluster-address and --cluster-advertise belong to --cluster.');
  }
  if (!/^s3:\/\/[a-z\d][a-z\d.-]+(\/[\w.-]+)+\/?$/i.test(bucket)) {
    throw usageError(`--cluster ${bucket} must be a bucket and a prefix in it, such as s3://jobs/production.`);
  }
  for (const [option, given] of [['address', address] as const, ['advertise', advertise] as const]) {
    if (given !== undefined && !/^.+:\d{1,5}$/.test(given)) {
      throw usageError(`--cluster-${option} ${given} must be host:port, such as 10.0.0.5:7000.`);
    }
  }
  if (advertise === undefined && /^(0\.0\.0\.0|\[?::\]?):/.test(address)) {
    const message = `--cluster-address ${address} is not an address at which others reach it: name that, too.`;
    throw usageError(message, 'Add --cluster-advertise 10.0.0.5:7000, say.');
  }
  const key = variables.CLUSTER_KEY ?? '';
  if (Buffer.byteLength(key) < MIN_KEY) {
    const found = key === '' ? 'CLUSTER_KEY is not set' : `CLUSTER_KEY has fewer than ${MIN_KEY} bytes`;
    throw usageError(`${found}: all processes of a cluster share one.`, 'Make one with: openssl rand -hex 32');
  }
  return { bucket, address, ...(advertise !== undefined && { advertise }), key };
}
