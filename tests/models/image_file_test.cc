#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <webp/decode.h>
#include <zlib.h>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/models/image_files.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Its pixels look random, and follow from their places.
Picture made_up(std::int64_t height, std::int64_t width) {
  Picture picture{.height = height, .width = width, .rgb = {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        picture.rgb.push_back(static_cast<std::uint8_t>((37 * y + 91 * x + 53 * c + 11 * x * y) % 256));
  return picture;
}

class ImageFile : public testing::Test {
 protected:
  std::string write(const std::string& bytes) {
    std::ofstream(folder_ / "x.img", std::ios::binary) << bytes;
    return folder_ / "x.img";
  }
  Picture read(const std::string& bytes) { return read_image(write(bytes), 1 << 16, 1 << 16); }
  TemporaryDirectory folder_;
};

TEST_F(ImageFile, GivesThePixelsOfAPng) {
  const Picture made = made_up(7, 11), found = read(png_bytes(7, 11, 3, made.rgb));
  EXPECT_EQ(found.height, 7);
  EXPECT_EQ(found.width, 11);
  EXPECT_EQ(found.rgb, made.rgb);
}

TEST_F(ImageFile, MakesGreyColourAndLaysTransparencyOnBlack) {
  EXPECT_THAT(read(png_bytes(1, 2, 1, {7, 200})).rgb, ElementsAre(7, 7, 7, 200, 200, 200));
  EXPECT_THAT(read(png_bytes(1, 3, 4, {10, 20, 30, 255, 10, 20, 30, 0, 100, 200, 40, 51})).rgb,
              ElementsAre(10, 20, 30, 0, 0, 0, 20, 40, 8));
}

// EXIF with one field, the orientation, from its TIFF header on.
std::string exif(int orientation, bool little) {
  if (little)
    return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + static_cast<char>(orientation) +
           std::string(7, '\0');
  return std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) + static_cast<char>(orientation) +
         std::string(6, '\0');
}

// The chunk eXIf behind the header's, which ends at byte 33.
std::string with_exif_png(std::string png, const std::string& tiff) {
  const auto number = [](std::size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  const std::string chunk = "eXIf" + tiff;
  const auto sum =
      crc32(0, reinterpret_cast<const unsigned char*>(chunk.data()), static_cast<unsigned>(chunk.size()));
  return png.insert(33, number(tiff.size()) + chunk + number(sum));
}

// The marker APP1 behind the first two bytes.
std::string with_exif_jpeg(std::string jpeg, const std::string& tiff) {
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  std::string marker = "\xff\xe1";
  marker += static_cast<char>((body.size() + 2) >> 8);
  marker += static_cast<char>(body.size() + 2);
  return jpeg.insert(2, marker + body);
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

std::string riff_chunk(const std::string& name, const std::string& content) {
  return name + little_endian(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}

// The container's longer form: flags 0x08 EXIF, 0x02 animation, 0x10 alpha.
std::string extended_webp(int height, int width, int flags, const std::string& chunks) {
  return riff_chunk("RIFF",
                    "WEBP" +
                        riff_chunk("VP8X", little_endian(static_cast<std::uint64_t>(flags), 4) +
                                               little_endian(static_cast<std::uint64_t>(width - 1), 3) +
                                               little_endian(static_cast<std::uint64_t>(height - 1), 3)) +
                        chunks);
}

std::string with_exif_webp(int height, int width, const std::string& webp, const std::string& exif) {
  return extended_webp(height, width, 0x08, webp.substr(12) + riff_chunk("EXIF", exif));
}

// The standard's table (EXIF 2.3, 4.6.4): where the rows and columns of the file are to be seen.
const std::vector<std::vector<std::string>> kSeen = {
    {"abc", "def"},     {"cba", "fed"},     {"fed", "cba"},     {"def", "abc"},
    {"ad", "be", "cf"}, {"da", "eb", "fc"}, {"fc", "eb", "da"}, {"cf", "be", "ad"}};

TEST_F(ImageFile, TurnsAPngAndAWebPAsTheirOrientationSays) {
  std::vector<std::uint8_t> pixels;
  for (const char letter : std::string("abcdef"))
    pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(letter));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::vector<std::string>& rows = kSeen[static_cast<std::size_t>(orientation - 1)];
    const std::string tiff = exif(orientation, orientation % 2 == 0);
    const std::string webp = webp_bytes(2, 3, 3, pixels);
    for (const std::string& file :
         {with_exif_png(png_bytes(2, 3, 3, pixels), tiff), with_exif_webp(2, 3, webp, tiff),
          with_exif_webp(2, 3, webp, std::string("Exif\0\0", 6) + tiff)}) {
      const Picture found = read(file);
      ASSERT_EQ(found.height, static_cast<std::int64_t>(rows.size()));
      ASSERT_EQ(found.width, static_cast<std::int64_t>(rows[0].size()));
      std::string seen, expected;
      for (std::size_t i = 0; i < found.rgb.size(); i += 3) seen += static_cast<char>(found.rgb[i]);
      for (const std::string& row : rows) expected += row;
      EXPECT_EQ(seen, expected);
    }
  }
}

TEST_F(ImageFile, TurnsAJpegAsItsOrientationSaysAtEachSize) {
  constexpr int kSide = 64;  // of a field of one brightness
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 2 * kSide; ++y)
    for (int x = 0; x < 3 * kSide; ++x)
      pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(40 * (3 * (y / kSide) + x / kSide)));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::vector<std::string>& rows = kSeen[static_cast<std::size_t>(orientation - 1)];
    const std::string path = write(
        with_exif_jpeg(jpeg_bytes(2 * kSide, 3 * kSide, 3, pixels), exif(orientation, orientation % 2 == 1)));
    const auto height = static_cast<std::int64_t>(rows.size()),
               width = static_cast<std::int64_t>(rows[0].size());
    for (const std::int64_t scale : {64, 16}) {
      SCOPED_TRACE(testing::Message() << orientation << " at " << scale);
      const Picture found = read_image(path, height * scale, width * scale);
      ASSERT_EQ(found.height, height * scale);
      ASSERT_EQ(found.width, width * scale);
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t middle = ((y * scale + scale / 2) * found.width + x * scale + scale / 2) * 3;
          const int letter = rows[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] - 'a';
          EXPECT_NEAR(found.rgb[static_cast<std::size_t>(middle)], 40 * letter, 4);
        }
    }
  }
}

TEST_F(ImageFile, TakesPicturesAsTheyLieWhereTheOrientationIsNone) {
  for (const int orientation : {0, 9, 200})
    EXPECT_EQ(read(with_exif_png(png_bytes(2, 3, 3, made_up(2, 3).rgb), exif(orientation, true))).rgb,
              made_up(2, 3).rgb);
  for (const std::string& damaged :
       {std::string("II"), std::string("II*\0\xff\xff\xff\xff", 8), exif(6, true).substr(0, 15)})
    EXPECT_EQ(read(with_exif_png(png_bytes(2, 3, 3, made_up(2, 3).rgb), damaged)).height, 2);
}

TEST_F(ImageFile, ChecksNoMoreThanTheHeader) {
  const std::vector<std::uint8_t> pixels = made_up(40, 40).rgb;
  for (const std::string& whole : {png_bytes(40, 40, 3, pixels), jpeg_bytes(40, 40, 3, pixels),
                                   webp_bytes(40, 40, 3, pixels), webp_bytes(40, 40, 3, pixels, 90)}) {
    EXPECT_NO_THROW(check_image(write(whole)));
    EXPECT_NO_THROW(check_image(write(whole.substr(0, whole.size() - 20)))) << "its pixels end early";
    for (const std::size_t bytes : {0, 3, 12, 20}) {
      EXPECT_THAT([&] { check_image(write(whole.substr(0, bytes))); },
                  ThrowsMessage<Error>(HasSubstr("x.img")))
          << bytes;
    }
  }
  EXPECT_THAT([&] { check_image(write("GIF89a and more")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("neither a PNG nor a JPEG nor a WebP")));
}

TEST_F(ImageFile, ChecksAHeaderThatIsLongerThanOthers) {
  std::string jpeg = jpeg_bytes(40, 40, 3, made_up(40, 40).rgb);
  for (int i = 0; i < 3; ++i) jpeg.insert(2, std::string("\xff\xe2\xea\x62", 4) + std::string(0xea60, 'x'));
  const std::string webp = extended_webp(
      40, 40, 0x20,
      riff_chunk("ICCP", std::string(0x2bf20, 'x')) + webp_bytes(40, 40, 3, made_up(40, 40).rgb).substr(12));
  EXPECT_NO_THROW(check_image(write(jpeg)));
  EXPECT_NO_THROW(check_image(write(webp)));
  EXPECT_THROW(check_image(write(jpeg.substr(0, 100'000))), DataLossError);
  EXPECT_THROW(read(webp.substr(0, 100'000)), DataLossError);
}

TEST_F(ImageFile, GivesThePixelsOfALosslessWebP) {
  const Picture made = made_up(7, 11), found = read(webp_bytes(7, 11, 3, made.rgb));
  EXPECT_EQ(found.height, 7);
  EXPECT_EQ(found.width, 11);
  EXPECT_EQ(found.rgb, made.rgb);
  EXPECT_THAT(read(webp_bytes(1, 3, 4, {10, 20, 30, 255, 10, 20, 30, 0, 100, 200, 40, 51})).rgb,
              ElementsAre(10, 20, 30, 0, 0, 0, 20, 40, 8));
}

// WebPDecodeRGB is what Pillow, browsers and dwebp show of a lossy file.
TEST_F(ImageFile, GivesThePixelsThatLibwebpDecodesOfALossyWebP) {
  const std::string webp = webp_bytes(33, 50, 3, made_up(33, 50).rgb, 80);
  int height = 0, width = 0;
  std::uint8_t* const decoded =
      WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(webp.data()), webp.size(), &width, &height);
  ASSERT_NE(decoded, nullptr);
  EXPECT_EQ(read(webp).rgb, std::vector<std::uint8_t>(decoded, decoded + 33 * 50 * 3));
  WebPFree(decoded);
  const Picture plain_one = read(webp_bytes(20, 30, 3, plain(20, 30, 200, 100, 50), 90));
  EXPECT_NEAR(plain_one.rgb[0], 200, 3);
  EXPECT_NEAR(plain_one.rgb[1], 100, 3);
  EXPECT_NEAR(plain_one.rgb[2], 50, 3);
}

TEST_F(ImageFile, LaysALossyWebPWithAlphaOnBlack) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 16 * 16; ++i) {
    const bool left = i % 16 < 8;
    pixels.insert(pixels.end(), {200, 100, 50, static_cast<std::uint8_t>(left ? 255 : 0)});
  }
  const Picture found = read(webp_bytes(16, 16, 4, pixels, 90));
  EXPECT_NEAR(found.rgb[0], 200, 6);
  EXPECT_THAT(std::vector<int>(found.rgb.begin() + 15 * 3, found.rgb.begin() + 16 * 3), ElementsAre(0, 0, 0));
}

TEST_F(ImageFile, RefusesAnAnimatedWebP) {
  const std::string frame =
      riff_chunk("ANIM", std::string(6, '\0')) +
      riff_chunk("ANMF", std::string(6, '\0') + little_endian(7, 3) + little_endian(7, 3) +
                             std::string(4, '\0') + webp_bytes(8, 8, 3, plain(8, 8, 1, 2, 3)).substr(12));
  const std::string path = write(extended_webp(8, 8, 0x02, frame));
  for (const auto& open : {+[](const std::string& file) { check_image(file); },
                           +[](const std::string& file) { read_image(file, 8, 8); }})
    EXPECT_THAT([&] { open(path); },
                ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("x.img"), HasSubstr("animated"))));
}

TEST_F(ImageFile, GivesThePixelsOfAJpegUpToItsLosses) {
  const Picture found = read(jpeg_bytes(20, 30, 3, plain(20, 30, 200, 100, 50)));
  EXPECT_EQ(found.height, 20);
  EXPECT_EQ(found.width, 30);
  for (std::size_t i = 0; i < found.rgb.size(); i += 3) {
    EXPECT_NEAR(found.rgb[i], 200, 3);
    EXPECT_NEAR(found.rgb[i + 1], 100, 3);
    EXPECT_NEAR(found.rgb[i + 2], 50, 3);
  }
  EXPECT_THAT(read(jpeg_bytes(3, 3, 1, std::vector<std::uint8_t>(9, 128))).rgb, Each(128));
}

TEST_F(ImageFile, GivesALargeJpegSmallerButNotTooSmall) {
  const std::string path = write(jpeg_bytes(400, 300, 3, plain(400, 300, 200, 100, 50)));
  const auto width_for = [&](std::int64_t height, std::int64_t width) {
    return read_image(path, height, width).width;
  };
  EXPECT_EQ(width_for(32, 32), 38);    // an eighth; less there is not
  EXPECT_EQ(width_for(100, 75), 75);   // a quarter
  EXPECT_EQ(width_for(100, 76), 150);  // a quarter would be too narrow
  EXPECT_EQ(width_for(101, 30), 150);  // or too low
  EXPECT_EQ(width_for(300, 300), 300);
}

TEST_F(ImageFile, RefusesDamagedFilesAndNamesThem) {
  const Picture made = made_up(40, 50);
  const std::string lossy = webp_bytes(40, 50, 3, made.rgb, 90);
  for (const auto& [kind, whole] : {std::pair("damaged PNG", png_bytes(40, 50, 3, made.rgb)),
                                    {"damaged JPEG", jpeg_bytes(40, 50, 3, made.rgb)},
                                    {"damaged WebP", lossy},
                                    {"damaged WebP", with_exif_webp(40, 50, lossy, exif(6, true))},
                                    {"damaged WebP", webp_bytes(40, 50, 3, made.rgb)}}) {
    for (const double share : {0.1, 0.5, 0.99}) {
      const std::string cut =
          whole.substr(0, static_cast<std::size_t>(share * static_cast<double>(whole.size())));
      EXPECT_THAT([&] { read(cut); },
                  ThrowsMessage<DataLossError>(AllOf(HasSubstr("x.img"), HasSubstr(kind))))
          << share;
    }
  }
  std::string changed = png_bytes(40, 50, 3, made.rgb);
  changed[changed.size() / 2] = static_cast<char>(~changed[changed.size() / 2]);
  EXPECT_THROW(read(changed), DataLossError);
  std::string lossless = webp_bytes(40, 50, 3, made.rgb);
  lossless[20] = static_cast<char>(~lossless[20]);  // the signature, and its neighbours
  EXPECT_THROW(read(lossless), DataLossError);
}

TEST_F(ImageFile, RefusesOtherFormats) {
  EXPECT_THAT([&] { read("GIF89a"); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("x.img"), HasSubstr("neither a PNG nor a JPEG nor a WebP"))));
  for (const char* const begun : {"", "RIFF", "RIFFxxxxWEB", "RIFFxxxxWAVE"})
    EXPECT_THROW(read(begun), InvalidArgumentError) << begun;
  EXPECT_THROW(read_image(folder_ / "none.png", 1, 1), NotFoundError);
}

// Pillow 9.4 gives (157, 31, 71) for these: each channel times the light that black leaves, over 255.
TEST_F(ImageFile, ReadsCmykAsPillowDoes) {
  std::vector<std::uint8_t> cmyk;
  for (int i = 0; i < 64; ++i) cmyk.insert(cmyk.end(), {200, 40, 90, 200});
  const Picture picture = read(jpeg_bytes(8, 8, 4, cmyk));
  EXPECT_NEAR(picture.rgb[0], 157, 3);
  EXPECT_NEAR(picture.rgb[1], 31, 3);
  EXPECT_NEAR(picture.rgb[2], 71, 3);
}

TEST_F(ImageFile, ReadsABaselineJpegWhoseScanSaysTheWrongRange) {
  std::string bytes = jpeg_bytes(8, 8, 3, plain(8, 8, 10, 200, 30));
  const Picture expected = read(bytes);
  const std::size_t scan = bytes.rfind("\xff\xda");
  const auto components = static_cast<std::size_t>(bytes[scan + 4]);
  ASSERT_EQ(bytes[scan + 6 + 2 * components], 63);
  bytes[scan + 6 + 2 * components] = 0;
  EXPECT_EQ(read(bytes).rgb, expected.rgb);
}

TEST_F(ImageFile, RefusesAProgressiveJpegOfHundredsOfScans) {
  EXPECT_THAT([&] { read(jpeg_bytes(8, 8, 3, plain(8, 8, 10, 200, 30), true)); },
              ThrowsMessage<DataLossError>(HasSubstr("more than 100 scans")));
}

TEST_F(ImageFile, RefusesMorePixelsThanAnyPhotographHasBeforeItTakesMemory) {
  std::string huge = png_bytes(1, 1, 1, {0});
  // Width and height of the header, 0x0000ffff each, and its checksum (zlib.crc32 of the 17 bytes before it).
  huge.replace(16, 8, std::string("\x00\x00\xff\xff\x00\x00\xff\xff", 8));
  const std::uint32_t sum = static_cast<std::uint32_t>([&] {
    std::uint32_t crc = ~0U;
    for (std::size_t i = 12; i < 29; ++i) {
      crc ^= static_cast<unsigned char>(huge[i]);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
    }
    return ~crc;
  }());
  for (int i = 0; i < 4; ++i) huge[29 + static_cast<std::size_t>(i)] = static_cast<char>(sum >> (24 - 8 * i));
  EXPECT_THAT([&] { read(huge); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("65535 x 65535 pixels")));
  std::string webp = webp_bytes(1, 1, 3, {1, 2, 3});
  // Width − 1 and height − 1, 14 bits each, behind the signature of lossless streams.
  webp.replace(21, 4, little_endian(0x3fffU | 0x3fffU << 14, 4));
  for (const auto& open : {+[](const std::string& file) { check_image(file); },
                           +[](const std::string& file) { read_image(file, 8, 8); }})
    EXPECT_THAT([&] { open(write(webp)); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("16384 x 16384 pixels")));
}

std::vector<int> resized(const Picture& picture, std::int64_t channels, std::int64_t height,
                         std::int64_t width) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(channels * height * width));
  resize_and_crop(picture, channels, height, width, pixels.data());
  return {pixels.begin(), pixels.end()};
}

void expect_near(const std::vector<int>& found, const std::vector<int>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1) << i;
}

// Pillow 9.4, Image.resize((width, height), Image.BILINEAR, box=the middle): it rounds between the two
// directions.
TEST(ResizeAndCrop, IsPillowsBilinearResizingOfTheMiddle) {
  const auto channel = [](const std::vector<int>& pixels, int c) {
    const auto each = static_cast<std::ptrdiff_t>(pixels.size() / 3);
    return std::vector<int>(pixels.begin() + c * each, pixels.begin() + (c + 1) * each);
  };
  const auto smaller = resized(made_up(7, 11), 3, 3, 4);
  expect_near(channel(smaller, 0), {124, 113, 136, 136, 137, 125, 145, 141, 125, 109, 121, 132});
  expect_near(channel(smaller, 2), {133, 122, 154, 128, 127, 122, 131, 119, 128, 133, 141, 125});
  const auto larger = resized(made_up(7, 11), 3, 9, 9);
  const auto blue = channel(larger, 2);
  expect_near({blue.begin(), blue.begin() + 18},
              {50, 93, 163, 177, 49, 120, 191, 176, 76, 89, 137, 138, 100, 110, 187, 168, 141, 141});
  expect_near({blue.end() - 9, blue.end()}, {141, 64, 101, 166, 89, 211, 191, 114, 65});
}

// torchvision 0.14.1, resized_crop of the Pillow image, BILINEAR.
TEST(ResizePart, IsTorchvisionsResizedCrop) {
  const auto part = [](const PictureBox& box, std::int64_t height, std::int64_t width) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * height * width));
    resize_part(made_up(7, 11), box, 3, height, width, pixels.data());
    return std::vector<int>(pixels.begin(), pixels.end());
  };
  expect_near(part({.top = 1, .left = 2, .height = 5, .width = 7}, 4, 3),
              {145, 114, 164, 114, 140, 155, 130, 133, 140, 124, 94,  120, 129, 141, 98,  122, 102, 78,
               138, 130, 95,  108, 147, 150, 114, 145, 151, 111, 146, 131, 106, 113, 116, 124, 159, 108});
  expect_near(part({.top = 4, .left = 6, .height = 2, .width = 3}, 4, 6),
              {190, 160, 99,  103, 170, 204, 152, 139, 111, 116, 153, 171, 75,  96,  135, 143, 118, 106,
               37,  74,  147, 156, 101, 73,  243, 213, 152, 92,  31,  1,   205, 192, 164, 121, 62,  32,
               128, 149, 188, 180, 123, 95,  90,  127, 200, 209, 154, 126, 40,  74,  141, 145, 84,  54,
               66,  85,  121, 126, 99,  85,  117, 106, 81,  89,  128, 148, 143, 116, 61,  70,  143, 179});
}

TEST_F(ImageFile, GivesAPartOfAJpegFromASmallerPicture) {
  constexpr int kHeight = 160, kWidth = 240;  // brightness grows to the right
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(x));
  const PictureBox wanted{.top = 16, .left = 40, .height = 100, .width = 160};
  const auto choose = [&](std::int64_t height, std::int64_t width) {
    EXPECT_EQ(height, kHeight);
    EXPECT_EQ(width, kWidth);
    return wanted;
  };
  const std::string jpeg = jpeg_bytes(kHeight, kWidth, 3, pixels),
                    png = png_bytes(kHeight, kWidth, 3, pixels);
  const PicturePart small = read_image_part(write(jpeg), 25, 40, choose),
                    larger = read_image_part(write(jpeg), 51, 40, choose),
                    whole = read_image_part(write(png), 25, 40, choose);
  EXPECT_EQ(small.picture.width, kWidth / 4);
  EXPECT_EQ(larger.picture.width, kWidth) << "half of the part's rows would be 50";
  EXPECT_EQ(whole.picture.width, kWidth);
  EXPECT_EQ(small.box.left, 10);
  EXPECT_EQ(small.box.height, 25);
  std::vector<std::uint8_t> found(3 * 25 * 40), expected(found);
  resize_part(small.picture, small.box, 3, 25, 40, found.data());
  resize_part(whole.picture, whole.box, 3, 25, 40, expected.data());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 3) << i;
}

TEST_F(ImageFile, ChoosesAPartOfAJpegAsItIsToBeSeen) {
  const std::string jpeg = with_exif_jpeg(jpeg_bytes(160, 240, 3, plain(160, 240, 9, 9, 9)), exif(6, true));
  const PicturePart part = read_image_part(write(jpeg), 30, 20, [](std::int64_t height, std::int64_t width) {
    EXPECT_EQ(height, 240);
    return PictureBox{
        .top = 0, .left = 0, .height = static_cast<double>(height), .width = static_cast<double>(width)};
  });
  EXPECT_EQ(part.picture.height, 30);
  EXPECT_EQ(part.box.width, 20);
}

TEST(ResizeAndCrop, LeavesAPictureOfThatSizeAsItIs) {
  const Picture picture = made_up(6, 5);
  const auto pixels = resized(picture, 3, 6, 5);
  for (std::size_t place = 0; place < 30; ++place)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(pixels[c * 30 + place], picture.rgb[3 * place + c]);
}

TEST(ResizeAndCrop, GivesBrightnessForOneChannel) {
  EXPECT_THAT(resized({.height = 4, .width = 4, .rgb = plain(4, 4, 100, 150, 200)}, 1, 2, 2),
              Each(std::lround(0.299 * 100 + 0.587 * 150 + 0.114 * 200)));
}

TEST(ResizeAndCrop, TakesPicturesOfOnePixel) {
  EXPECT_THAT(resized({.height = 1, .width = 1, .rgb = {9, 8, 7}}, 3, 2, 2),
              ElementsAreArray({9, 9, 9, 9, 8, 8, 8, 8, 7, 7, 7, 7}));
}

}  // namespace
}  // namespace kolo::models
