"""Models of timm: the smallest member of each family, with few blocks and a small image.

A family is what one module of timm calls by one name. Blocks are fewer where the constructor takes
their number; the image is the smallest of some sizes that the model runs on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fewbit.base.typed_torch import manual_seed
from tests.strangers.stranger import Stranger, TorchCase, need


@dataclass(frozen=True)
class TimmModel(Stranger):
    """A name that `timm.create_model` takes, with its arguments."""

    image: int = 64
    options: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def build(self, folder: Path) -> TorchCase:
        timm = need("timm")
        manual_seed(0)
        model = timm.create_model(self.name, **self.options)
        return TorchCase(model, (self._images(1),), tuple((self._images(4),) for _ in range(3)))

    def _images(self, batch: int) -> torch.Tensor:
        return torch.randn(batch, 3, self.image, self.image)


def _model(name: str, image: int = 64, **options: Any) -> TimmModel:
    return TimmModel("timm", name, image, options)


FIRST = [
    _model("beit_base_patch16_224", depth=2, img_size=64),
    _model("botnet26t_256", img_size=64),
    _model("bat_resnext26ts", 256),
    _model("cait_xxs24_224", depth=2, img_size=64),
    _model("coat_tiny", img_size=64),
    _model("convit_tiny", img_size=64),
    _model("convmixer_768_32"),
    _model("convnext_zepto_rms", depths=(1, 1, 1, 1)),
    _model("cpubone_nano"),
    _model("crossvit_tiny_240"),
    _model("csatv2"),
    _model("cs3darknet_focus_s"),
    _model("davit_tiny", depths=(1, 1, 1, 1)),
    _model("deit_tiny_patch16_224", depth=2, img_size=64),
    _model("densenet121"),
    _model("dla46x_c"),
    _model("dpn48b"),
    _model("edgenext_xx_small", depths=(1, 1, 1, 1)),
    _model("efficientformer_l1", 224, depths=(1, 1, 1, 1)),
    _model("efficientformerv2_s0", depths=(1, 1, 1, 1), img_size=64),
    _model("efficientnet_b0"),
    _model("efficientvim_m1", depths=(1, 1, 1)),
    _model("efficientvit_b0", depths=(1, 1, 1, 1, 1)),
    _model("efficientvit_m0", img_size=64),
    _model("eva02_tiny_patch14_224", depth=2, img_size=64),
    _model("fasternet_t0", depths=(1, 1, 1, 1)),
    _model("fastvit_t8", layers=(1, 1, 1, 1)),
    _model("focalnet_tiny_srf"),
    _model("gcvit_xxtiny", img_size=64),
    _model("gemma4_vit_167m", depth=2),
    _model("ghostnet_050"),
    _model("hardcorenas_b"),
    _model("hgnet_tiny"),
    _model("hiera_tiny_224", img_size=64),
    _model("hieradet_small"),
    _model("hrnet_w18_small"),
    _model("iformer_t"),
    _model("inception_next_atto", depths=(1, 1, 1, 1)),
    _model("inception_resnet_v2", 96),
    _model("inception_v3", 96),
    _model("inception_v4", 96),
    _model("lcnetv2_small", depths=(1, 1, 1, 1)),
    _model("levit_128s", img_size=64),
    _model("lowformer_b0"),
    _model("mambaout_femto", depths=(1, 1, 1, 1)),
    _model("coatnet_pico_rw_224", img_size=64),
    _model("caformer_s18"),
    _model("gmixer_12_224", img_size=64),
    _model("fbnetv3_b"),
    _model("mobilenetv5_base"),
    _model("mobilevit_xxs"),
    _model("mvitv2_tiny"),
    _model("naflexvit_base_patch16_parfac_gap"),
    _model("nasnetalarge"),
    _model("nest_tiny", img_size=64),
    _model("nextvit_small"),
    _model("dm_nfnet_f0"),
    _model("pit_ti_224", img_size=64),
    _model("pnasnet5large"),
    _model("pvt_v2_b0", depths=(1, 1, 1, 1)),
    _model("qwen3_vit_88m", depth=2),
    _model("rdnet_tiny"),
    _model("regnetv_040"),
    _model("repghostnet_050"),
    _model("repvit_m1"),
    _model("res2next50", layers=(1, 1, 1, 1)),
    _model("resnest14d"),
    _model("ecaresnet26t", layers=(1, 1, 1, 1)),
    _model("resnetv2_18", layers=(1, 1, 1, 1)),
    _model("rexnet_100"),
    _model("selecsls42"),
    _model("legacy_seresnet18", layers=(1, 1, 1, 1)),
    _model("sequencer2d_s", layers=(1, 1, 1, 1)),
    _model("shvit_s1"),
    _model("skresnet18", layers=(1, 1, 1, 1)),
    _model("starnet_s050", depths=(1, 1, 1, 1)),
    _model("swiftformer_xs", layers=(1, 1, 1, 1)),
    _model("swin_tiny_patch4_window7_224", depths=(2, 2, 2, 2), img_size=64),
    _model("swinv2_tiny_window8_256", depths=(2, 2, 2, 2), img_size=64),
    _model("swinv2_cr_tiny_224", depths=(2, 2, 2, 2), img_size=64),
    _model("tiny_vit_5m_224", depths=(1, 1, 1, 1)),
    _model("tnt_s_legacy_patch16_224", depth=2, img_size=64),
    _model("tresnet_m", layers=(1, 1, 1, 1)),
    _model("twins_svt_small", depths=(1, 1, 1, 1)),
    _model("vgg11"),
    _model("visformer_tiny", img_size=64),
    _model("aimv2_1b_patch14_224", depth=2, img_size=64),
    _model("vit_tiny_r_s16_p8_224", depth=2, img_size=64),
    _model("vit_srelpos_small_patch16_224", depth=2, img_size=64),
    _model("samvit_base_patch16_224", depth=2),
    _model("vitamin_small_224", depth=2, img_size=64),
    _model("volo_d1_224", img_size=64),
    _model("eca_vovnet39b"),
    _model("legacy_xception"),
    _model("xception41p"),
    _model("xcit_nano_12_p8_224", depth=2),
]
"""One of each module of timm."""

FURTHER = [
    _model("beitv2_base_patch16_224", depth=2, img_size=64),
    _model("eca_botnext26ts_256", img_size=64),
    _model("halo2botnet50ts_256", 128, img_size=128),
    _model("halonet_h1", 256),
    _model("haloregnetz_b", 224),
    _model("lambda_resnet26t"),
    _model("lamhalobotnet50ts_256", 128, img_size=128),
    _model("sebotnet33ts_256", img_size=64),
    _model("sehalonet33ts", 256),
    _model("eca_resnext26ts"),
    _model("gcresnet33ts"),
    _model("gcresnext26ts"),
    _model("gernet_s"),
    _model("mobileone_s1"),
    _model("regnetz_b16"),
    _model("repvgg_a0"),
    _model("resnet32ts"),
    _model("resnext26ts"),
    _model("seresnet33ts"),
    _model("seresnext26ts"),
    _model("convnextv2_atto", depths=(1, 1, 1, 1)),
    _model("cspdarknet53"),
    _model("cspresnet50"),
    _model("cspresnext50"),
    _model("darknet17"),
    _model("darknetaa53"),
    _model("sedarknet21"),
    _model("densenetblur121d"),
    _model("efficientnetv2_rw_t"),
    _model("fbnetc_100"),
    _model("gc_efficientnetv2_rw_t"),
    _model("mixnet_s"),
    _model("mnasnet_small"),
    _model("mobilenet_edgetpu_100"),
    _model("mobilenetv2_035"),
    _model("semnasnet_050"),
    _model("spnasnet_100"),
    _model("tf_efficientnet_b0"),
    _model("tinynet_e"),
    _model("vit_small_patch16_dinov3", depth=2),
    _model("ghostnetv3_050"),
    _model("hgnetv2_b0"),
    _model("sam2_hiera_tiny"),
    _model("coatnext_nano_rw_224", img_size=64),
    _model("maxvit_pico_rw_256", img_size=64),
    _model("maxxvit_rmlp_nano_rw_256", img_size=64),
    _model("maxxvitv2_nano_rw_256", img_size=64),
    _model("convformer_s18"),
    _model("poolformer_s12"),
    _model("poolformerv2_s12"),
    _model("gmlp_ti16_224", img_size=64),
    _model("mixer_s16_224", img_size=64),
    _model("resmlp_12_224", img_size=64),
    _model("lcnet_035"),
    _model("mobilenetv3_small_050"),
    _model("tf_mobilenetv3_small_075"),
    _model("mobilevitv2_050"),
    _model("eca_nfnet_l0"),
    _model("nf_regnet_b0"),
    _model("nfnet_l0"),
    _model("regnetx_002"),
    _model("regnety_002"),
    _model("regnetz_005"),
    _model("ecaresnetlight", layers=(1, 1, 1, 1)),
    _model("ecaresnext26t_32x4d", layers=(1, 1, 1, 1)),
    _model("resnet10t"),
    _model("resnetaa34d", layers=(1, 1, 1, 1)),
    _model("resnetblur18", layers=(1, 1, 1, 1)),
    _model("resnetrs50", layers=(1, 1, 1, 1)),
    _model("resnext50_32x4d", layers=(1, 1, 1, 1)),
    _model("senet154", layers=(1, 1, 1, 1)),
    _model("seresnet18", layers=(1, 1, 1, 1)),
    _model("seresnetaa50d", layers=(1, 1, 1, 1)),
    _model("seresnext26t_32x4d", layers=(1, 1, 1, 1)),
    _model("seresnextaa201d_32x8d", layers=(1, 1, 1, 1)),
    _model("wide_resnet50_2", layers=(1, 1, 1, 1)),
    _model("rexnetr_100"),
    _model("skresnext50_32x4d", layers=(1, 1, 1, 1)),
    _model("beit3_base_patch16_224", depth=2, img_size=64),
    _model("eva_large_patch14_196", depth=2, img_size=64),
    _model("flexivit_small", depth=2, img_size=64),
    _model("vit_base_patch16_clip_quickgelu_224", depth=2, img_size=64),
    _model("ese_vovnet19b_slim_dw"),
    _model("vovnet39a"),
]
"""Other families that the modules have."""

MODELS = [*FIRST, *FURTHER]
