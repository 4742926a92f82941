// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/other_names.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

struct OtherName {
  std::string_view key;
  std::string_view words;  // between blanks
};

constexpr OtherName kOtherNames[] = {
    {"data.train", " dataset data_dir data_path data_root root train_dir train_data train_path traindir "},
    {"data.validate", " val valid validation val_dir val_data val_path validation_data validation_dir valdir "},
    {"data.test", " test_dir test_data test_path "},
    {"data.image_size", " img_size input_size input_shape resolution imgsz crop_size train_crop_size "},
    {"data.augment", " augmentation augmentations auto_augment aa transform transforms randaugment "},
    {"data.flip", " hflip horizontal_flip random_flip fliplr "},
    {"data.center_crop", " crop_pct "},
    {"data.crop_scale_min", " scale random_crop_scale "},
    {"data.threads", " workers num_workers dataloader_num_workers n_workers "},
    {"model.name", " arch architecture backbone network net model_name "},
    {"model.classes", " num_classes nb_classes n_classes num_labels "},
    {"model.weights", " pretrained initial_checkpoint checkpoint_path pretrained_weights finetune init_from "},
    {"model.dropout", " drop drop_rate dropout_rate "},
    {"model.drop_path", " drop_path_rate stochastic_depth stochastic_depth_prob "},
    {"training.global_batch", " batch_size batch train_batch_size total_batch_size bs "},
    {"training.micro_batch",
     " per_device_train_batch_size per_gpu_batch_size gradient_accumulation_steps grad_accum_steps "
     "accumulate_grad_batches accumulation "},
    {"training.epochs", " num_epochs max_epochs n_epochs num_train_epochs nb_epochs "},
    {"training.steps", " max_steps num_steps total_steps train_steps iterations max_iters num_iterations "},
    {"training.precision", " amp fp16 bf16 mixed_precision dtype autocast "},
    {"training.batch_norm", " sync_bn sync_batchnorm "},
    {"training.recompute", " gradient_checkpointing grad_checkpointing activation_checkpointing "},
    {"training.zero", " zero_stage fsdp "},
    {"training.optimizer.name", " opt optim optimizer_name "},
    {"training.optimizer.lr", " learning_rate base_lr max_lr lr_base initial_lr learningrate "},
    {"training.optimizer.weight_decay", " wd l2 "},
    {"training.optimizer.epsilon", " eps opt_eps adam_epsilon "},
    {"training.schedule.name", " scheduler sched lr_scheduler lr_scheduler_type lr_schedule "},
    {"training.schedule.warmup_epochs", " warmup warmup_steps num_warmup_steps lr_warmup_epochs warmup_ratio "},
    {"training.schedule.final_lr", " min_lr lr_min eta_min "},
    {"training.schedule.step_epochs", " decay_epochs milestones lr_step_size decay_milestones "},
    {"training.schedule.gamma", " decay_rate lr_gamma "},
    {"training.phases", " freeze frozen freeze_backbone "},
    {"training.clip_norm", " clip_grad grad_clip gradient_clip_val max_grad_norm clip_grad_norm clipnorm "},
    {"training.clip_value", " clip_grad_value clipvalue "},
    {"training.ema_decay", " ema model_ema model_ema_decay "},
    {"training.label_smoothing", " smoothing label_smooth "},
    {"training.mixup", " mixup_alpha "},
    {"training.cutmix", " cutmix_alpha "},
    {"training.seed", " random_seed random_state manual_seed "},
    {"evaluation.every_epochs", " eval_every eval_interval validation_freq check_val_every_n_epoch "},
    {"evaluation.every_steps", " eval_steps eval_iter val_check_interval "},
    {"evaluation.batch", " eval_batch_size val_batch_size validation_batch_size per_device_eval_batch_size "},
    {"checkpoint.every_epochs", " save_every save_interval save_steps save_freq checkpoint_interval "},
    {"checkpoint.keep", " save_total_limit save_top_k checkpoint_hist max_to_keep "},
    {"limits.walltime", " time_limit max_time timeout "},
};

bool has_key(const Section& root, std::string_view key) {
  const Section* section = &root;
  const Field* field = nullptr;
  for (const auto& part : base::split(key, '.')) {
    field = section ? section->find(part) : nullptr;
    if (!field) return false;
    section = field->section;
  }
  return field != nullptr;
}

}  // namespace

std::optional<std::string> key_by_other_name(const Section& root, std::string_view word) {
  std::string wanted = " ";
  for (const char c : word) wanted += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  wanted += " ";
  const auto* found = std::find_if(std::begin(kOtherNames), std::end(kOtherNames), [&](const OtherName& row) {
    return row.words.find(wanted) != std::string_view::npos;
  });
  if (found == std::end(kOtherNames) || !has_key(root, found->key)) return std::nullopt;
  return std::string(found->key);
}

}  // namespace lockstep::spec
