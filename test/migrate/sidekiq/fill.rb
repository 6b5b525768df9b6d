# Puts one of each kind of job into Redis, with Sidekiq itself. Prints their ids as JSON.
require 'sidekiq'
require 'sidekiq/api'
require 'sidekiq/job_retry'
require 'json'

Sidekiq.logger.level = Logger::FATAL

class HardJob
  include Sidekiq::Worker
end

module Mail
  class SendJob
    include Sidekiq::Worker
    sidekiq_options queue: 'High_Prio', retry: 5, tags: ['mail']
  end
end

class OnceJob
  include Sidekiq::Worker
  sidekiq_options retry: false
end

ids = {
  plain: HardJob.perform_async('ada', { 'someKey' => [1, nil] }),
  second: HardJob.perform_async('bob'),
  late: Mail::SendJob.perform_in(3600, 17),
  queued: Mail::SendJob.perform_async(18),
  once: OnceJob.perform_async,
  large: HardJob.perform_async('x' * 1_100_000),
  active: Sidekiq::Client.push(
    'class' => 'ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper', 'wrapped' => 'WelcomeJob', 'queue' => 'default',
    'args' => [{ 'job_class' => 'WelcomeJob', 'job_id' => 'a', 'arguments' => [{ '_aj_globalid' => 'gid://shop/User/1' }] }]
  )
}

# What a worker does with a job that fails: the first of these for the third time, the second for good.
fail_it = lambda do |job|
  Sidekiq::JobRetry.new({}).global(Sidekiq.dump_json(job), 'default') { raise ArgumentError, 'no luck' }
rescue Sidekiq::JobRetry::Handled
  nil
end
common = { 'class' => 'HardJob', 'args' => [1], 'queue' => 'default', 'created_at' => Time.now.to_f }
fail_it.call(common.merge('jid' => 'retried0', 'retry' => true, 'retry_count' => 1))
fail_it.call(common.merge('jid' => 'dead0', 'retry' => 0))
ids[:retried] = 'retried0'

# As the gem sidekiq-cron writes its entries.
Sidekiq.redis do |redis|
  redis.sadd('cron_jobs', 'cron_job:Nightly report')
  redis.hmset(
    'cron_job:Nightly report', 'name', 'Nightly report', 'klass', 'HardJob', 'cron', '30 2 * * * Europe/Paris',
    'status', 'enabled', 'args', '["x"]', 'message', JSON.dump('retry' => 3, 'queue' => 'High_Prio', 'class' => 'HardJob', 'args' => ['x'])
  )
  redis.sadd('cron_jobs', 'cron_job:spoken')
  redis.hmset('cron_job:spoken', 'name', 'spoken', 'klass', 'HardJob', 'cron', 'every 5 minutes', 'message', '{}')
end

puts JSON.dump(ids)
